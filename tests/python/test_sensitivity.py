# SPDX-License-Identifier: BSD-2-Clause
"""dl2.study.sensitivity: gradients' covariances against sums over all pairs of pixels, and tables that are fitted to them."""
import json
import os
import unittest

import torch

import dl2
from dl2 import study
from dl2.torch import Loader
from small_dataset import flowers, run, scratch

STD = 0.2, 0.3, 0.4
JFIF = torch.tensor([[1, 1, 1], [0, -0.344136, 1.772], [1.402, -0.714136, 0]], dtype=torch.float64)


def path(name):
    return os.path.join(scratch.name, name)


def by_pairs(gradients):
    """[p, 17, 33] of gradients [n, p, h, w]: the mean over all pairs, and 0 where there is none."""
    means = torch.zeros(gradients.shape[1], 17, 33, dtype=torch.float64)
    height, width = gradients.shape[2:]
    for down in range(min(17, height)):
        for shift in range(-16, 17):
            if abs(shift) < width:
                first = gradients[:, :, :height - down, max(0, -shift):width - max(0, shift)]
                second = gradients[:, :, down:, max(0, shift):width + min(0, shift)]
                means[:, down, shift + 16] = (first * second).mean((0, 2, 3))
    return means


def read(name):
    with open(path(name)) as file:
        found = json.load(file)
    planes = [torch.tensor(found["covariance"][plane], dtype=torch.float64) for plane in ("luma", "cb", "cr")[:len(found["covariance"])]]
    return found, torch.stack(planes)


def close(a, b):
    return bool(((a - b).abs() <= 1e-6 * b.abs().max()).all())


class Sensitivity(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(4)

    def test_covariance(self):
        """A loss whose gradient is known, of images wider and of images smaller than the shifts."""
        for height, width in ((20, 40), (9, 12)):
            batches = [torch.randn(n, 3, height, width) for n in (4, 4, 2)]
            study.sensitivity(lambda images: images, batches, path("known.json"), std=STD, data="noise", weights="w", arch="a",
                              loss=lambda model, images, targets: (model(images) ** 2).sum((1, 2, 3)) / 2)
            found, planes = read("known.json")
            levels = torch.cat(batches).double() / (255 * torch.tensor(STD, dtype=torch.float64)[:, None, None])
            self.assertTrue(close(planes, by_pairs(torch.einsum("pc,nchw->nphw", JFIF, levels))))
            self.assertEqual({**found, "covariance": None},
                             {"schema": "dl2-sensitivity/1", "arch": "a", "weights": "w", "data": "noise", "input": [height, width],
                              "channels": 3, "images": 10, "lags": 16, "covariance": None})

    def test_labels_are_drawn_from_predictions(self):
        """Of two classes whose scores are +-x: the mean square of the gradient is p (1 - p) * 4 on average."""
        def scores(images):
            x = images.mean((1, 2, 3), keepdim=False)
            return torch.stack((x, -x), 1)
        batches = [torch.full((500, 1, 2, 2), 0.4) for _ in range(8)]
        found = study.sensitivity(scores, batches, path("drawn.json"), std=(1,), limit=4000)
        p = 1 / (1 + torch.exp(torch.tensor(-0.8))).item()
        self.assertAlmostEqual(found["covariance"]["luma"][0][16] * (255 * 4) ** 2, 4 * p * (1 - p), delta=0.05)
        self.assertEqual((found["channels"], list(found["covariance"])), (1, ["luma"]))
        again = study.sensitivity(scores, batches, path("again.json"), std=(1,), limit=4000)
        self.assertEqual(found, again)
        self.assertNotEqual(found, study.sensitivity(scores, batches, path("again.json"), std=(1,), limit=4000, seed=2))

    def test_networks(self):
        """Its mode, weights and gradients stay; scores of pixels; an output with logits; two inputs of a loss."""
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Dropout(0.5), torch.nn.Conv2d(4, 5, 1))
        before = {name: value.clone() for name, value in net.state_dict().items()}
        images = torch.randn(6, 3, 16, 16)
        study.sensitivity(net, [images], path("net.json"), std=STD, limit=5)
        self.assertTrue(net.training and all(module.training for module in net))
        self.assertTrue(all(torch.equal(value, before[name]) for name, value in net.state_dict().items()))
        self.assertTrue(all(weight.grad is None for weight in net.parameters()))
        found, of_pixels = read("net.json")
        self.assertEqual((found["arch"], found["images"]), ("Sequential", 5))
        class Output:
            def __init__(self, logits):
                self.logits = logits
        study.sensitivity(lambda x: Output(net.eval()(x)), [images], path("logits.json"), std=STD, limit=5)
        self.assertTrue(close(read("logits.json")[1], of_pixels))
        targets = torch.randint(5, (6, 14, 14))
        study.sensitivity(net, [(images, targets)], path("loss.json"), std=STD,
                          loss=lambda model, x, y: torch.nn.functional.cross_entropy(model(x), y, reduction="sum"))
        study.sensitivity(net, [(images[:3], targets[:3]), (images[3:], targets[3:])], path("halves.json"), std=STD,
                          loss=lambda model, x, y: torch.nn.functional.cross_entropy(model(x), y, reduction="none").sum((1, 2)))
        self.assertTrue(close(read("halves.json")[1], read("loss.json")[1]))

    def test_refused(self):
        images = torch.randn(2, 3, 8, 8)
        net = torch.nn.Conv2d(3, 5, 3)
        for error, message, call in (
                (TypeError, "std is missing", lambda: study.sensitivity(net, [images], path("no"))),
                (ValueError, "images of 3 channels, and std", lambda: study.sensitivity(net, [images], path("no"), std=(1,))),
                (ValueError, "images of 3 channels, and std", lambda: study.sensitivity(net, [images], path("no"), std=(1, 0, 1))),
                (ValueError, "no images", lambda: study.sensitivity(net, [], path("no"), std=STD)),
                (TypeError, "batches of float tensors", lambda: study.sensitivity(net, [images.to(torch.uint8)], path("no"), std=STD)),
                (ValueError, "all need one size", lambda: study.sensitivity(net, [images, torch.randn(2, 3, 9, 8)], path("no"), std=STD)),
                (TypeError, "give loss", lambda: study.sensitivity(lambda x: x.mean((2, 3))[:, :1], [images], path("no"), std=STD)),
                (TypeError, "does not depend", lambda: study.sensitivity(lambda x: x.detach(), [images], path("no"), std=STD)),
                (ValueError, "0 everywhere", lambda: study.sensitivity(lambda x: x * 0, [images], path("no"), std=STD)),
                (ValueError, "not finite", lambda: study.sensitivity(lambda x: (x * 0).sqrt(), [images], path("no"), std=STD))):
            with self.assertRaisesRegex(error, message):
                call()
        self.assertFalse(os.path.exists(path("no")))

    def test_tables(self):
        """dl2-transcode fits tables to a network of a loader's batches: one that sees means keeps less of what is fine."""
        steps = {}
        for name, see in (("fine", lambda x: x), ("coarse", lambda x: torch.nn.functional.avg_pool2d(x, 8))):
            loader = Loader(flowers, 8, 32, seed=1, workers=1)
            found = study.sensitivity(see, loader, path(f"{name}.json"), data=flowers,
                                      loss=lambda model, x, y: (model(x) * torch.randn(model(x).shape)).sum())
            self.assertEqual((found["images"], found["input"], found["data"]), (40, [32, 32], flowers))
            run("dl2-transcode", "--quiet", "fit-tables", "--sensitivity", path(f"{name}.json"), flowers, path(f"{name}-tables.json"))
            with open(path(f"{name}-tables.json")) as file:
                tables = json.load(file)
            self.assertEqual((tables["about"]["for"], tables["about"]["data"]), ("network", flowers))
            steps[name] = [int(step) for step in tables["families"][0]["qualities"][49]["luma"].split()]
        share = {name: sum(of[36:]) / sum(of[:8]) for name, of in steps.items()}
        self.assertGreater(share["coarse"], 1.2 * share["fine"], steps)


if __name__ == "__main__":
    unittest.main()
