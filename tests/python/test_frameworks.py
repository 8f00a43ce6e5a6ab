# SPDX-License-Identifier: BSD-2-Clause
"""dl2.torch.Loader in Lightning's Trainer, and in two processes of Hugging Face's accelerate, on the CPU."""
import contextlib
import os
import subprocess
import sys
import unittest
import warnings

import torch

try:
    import lightning
except ImportError:
    lightning = None
try:
    import accelerate
except ImportError:
    accelerate = None
import dl2
import dl2.torch
from small_dataset import SIZE, flowers, scratch


def orders(count):
    """The samples' numbers of the first epochs, as dl2 alone has them."""
    loader = dl2.Loader(flowers, batch=8, image_size=SIZE, seed=1)
    return [[i for batch in loader for i in batch.indices.tolist()] for _ in range(count)]


@unittest.skipUnless(lightning, "no Lightning (PyPI: lightning)")
class Lightning(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")  # Lightning's advice on loggers, workers and the like

    def trainer(self, **settings):
        return lightning.Trainer(accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
                                 enable_model_summary=False, default_root_dir=scratch.name, **settings)

    def net(self):
        class Net(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer, self.seen, self.right = torch.nn.Linear(3, 2), [], 0

            def step(self, batch):
                images, targets, sidecars = batch
                scores = self.layer(images.mean((2, 3)))
                return torch.nn.functional.cross_entropy(scores, targets), scores.argmax(1) == targets, sidecars["indices"]

            def training_step(self, batch, number):
                loss, _, indices = self.step(batch)
                self.seen.append((self.current_epoch, indices.tolist()))
                return loss

            def validation_step(self, batch, number):
                self.right += int(self.step(batch)[1].sum())

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.5)
        return Net()

    def loader(self, **settings):
        return dl2.torch.Loader(flowers, 8, SIZE, seed=1, indices=True, workers=2, **settings)

    def seen(self, net):
        """By epoch, the samples in their order."""
        epochs = {}
        for epoch, indices in net.seen:
            epochs.setdefault(epoch, []).extend(indices)
        return epochs

    def test_fit(self):
        net = self.net()
        self.trainer(max_epochs=3, enable_checkpointing=False).fit(net, self.loader(), self.loader(train=False))
        self.assertEqual(self.seen(net), dict(enumerate(orders(3))))
        self.assertGreater(net.right, 0)

    def test_a_loader_that_has_been_used(self):
        """Lightning's epoch is the loader's, whatever came before."""
        loader, net = self.loader(), self.net()
        for _ in range(2):
            next(iter(loader))
        self.trainer(max_epochs=2, enable_checkpointing=False).fit(net, loader)
        self.assertEqual(self.seen(net), dict(enumerate(orders(2))))

    def test_resume(self):
        """In the middle of an epoch, and between two: the samples that were still to come."""
        expected = orders(3)
        for name, steps in ("middle", 7), ("between", 5):
            keep = lightning.pytorch.callbacks.ModelCheckpoint(scratch.name, name, every_n_train_steps=steps, save_top_k=-1)
            first, second = self.net(), self.net()
            self.trainer(max_steps=steps + 1, callbacks=[keep]).fit(first, self.loader())
            self.trainer(max_epochs=3, enable_checkpointing=False).fit(
                second, self.loader(), ckpt_path=f"{scratch.name}/{name}.ckpt")
            before, after = {}, self.seen(second)
            for epoch, indices in first.seen[:steps]:  # those that the checkpoint has seen
                before.setdefault(epoch, []).extend(indices)
            self.assertEqual([before.get(epoch, []) + after.get(epoch, []) for epoch in range(3)], expected, name)


@unittest.skipUnless(accelerate, "no accelerate (PyPI: accelerate)")
class Accelerate(unittest.TestCase):
    def run_two(self, way):
        program = f"""if 1:
            import os, sys, warnings
            warnings.simplefilter("ignore")
            import torch
            from torch import distributed
            from torch.utils.data import DataLoader
            import accelerate, dl2.torch
            accelerator = accelerate.Accelerator(cpu=True{', dataloader_config=accelerate.DataLoaderConfiguration('
                                                         'dispatch_batches=False)' if way == "shard" else ''})
            loader = dl2.torch.Loader({flowers!r}, 4, {SIZE}, seed=1, indices=True)
            prepared = accelerator.prepare({'loader' if way == 'itself' else
                                            'DataLoader(loader, batch_size=None, num_workers=%d)' % (way == 'worker')})
            try:
                for epoch in range(2):
                    seen = [i for images, targets, sidecars in prepared for i in sidecars["indices"].tolist()]
                    both = [None, None]
                    distributed.all_gather_object(both, seen)
                    assert sorted(both[0] + both[1]) == list(range(40)), both
                print("each once")
            except ValueError as error:
                print(error)
        """
        children = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env={
            **os.environ, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port())}) for rank in ("0", "1")]
        return [child.communicate()[0] for child in children]

    def port(self):
        """One that is free, the same for both processes of a test."""
        if not hasattr(self, "_port"):
            import socket
            with contextlib.closing(socket.socket()) as free:
                free.bind(("127.0.0.1", 0))
                self._port = free.getsockname()[1]
        return self._port

    def test_the_loader_itself(self):
        self.assertEqual(self.run_two("itself"), ["each once\n"] * 2)

    def test_a_data_loader_of_it(self):
        """accelerate would divide the parts of the two processes again."""
        for way in "dispatch", "worker", "shard":
            for output in self.run_two(way):
                self.assertIn("give prepare() the Loader itself", output, way)


if __name__ == "__main__":
    unittest.main(verbosity=1)
