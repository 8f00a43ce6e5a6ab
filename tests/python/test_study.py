# SPDX-License-Identifier: BSD-2-Clause
"""dl2.study, of the package or as a file by itself, in which case nothing but Python's own library is there."""
import csv
import decimal
import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    from dl2 import study
except ImportError:
    import study

STUDY = {"DL2_DATA": "/v/jpeg-50", "DL2_VAL": "/v/jpeg-50", "DL2_ORIGINAL": "/photos", "DL2_VARIANT": "jpeg-50", "DL2_ARCH": "train",
         "DL2_SEED": "3", "DL2_THREADS": "2", "DL2_EPOCHS": "10", "DL2_BATCH": "32", "DL2_IMAGE_SIZE": "224", "DL2_DEVICE": "cpu",
         "DL2_ATTEMPT": "2"}


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dl2-test.")
        self.addCleanup(folder.cleanup)
        self.out = folder.name
        before = {name: value for name, value in os.environ.items() if name.startswith("DL2_") or name == "RANK"}
        for name in before:
            del os.environ[name]
        self.addCleanup(os.environ.update, before)
        self.addCleanup(lambda: [os.environ.pop(name) for name in list(os.environ) if name.startswith("DL2_") or name == "RANK"])

    def enter(self, **changed):
        os.environ.update({**STUDY, "DL2_OUT": self.out, **changed})

    def files(self):
        return sorted(os.listdir(self.out))

    def result(self):
        with open(os.path.join(self.out, "result.json"), encoding="utf-8") as file:
            return json.load(file)

    def rows(self, name="outcomes.csv"):
        with open(os.path.join(self.out, name), newline="", encoding="utf-8") as file:
            return list(csv.reader(file))


class Where(Scratch):
    def test_in_a_study(self):
        self.enter()
        run = study.Run(data="elsewhere", val="elsewhere", seed=9, epochs=1, out="elsewhere", image_size=32)
        self.assertTrue(run.inside and run.resumed)
        found = [run.data, run.val, run.original, run.variant, run.arch, run.seed, run.out, run.threads, run.epochs, run.batch,
                 run.image_size, run.device, run.attempt]
        self.assertEqual(found, ["/v/jpeg-50", "/v/jpeg-50", "/photos", "jpeg-50", "train", 3, self.out, 2, 10, 32, 224, "cpu", 2])
        self.enter(DL2_IMAGE_SIZE="64x128x128", DL2_ATTEMPT="1", DL2_DEVICE="auto")
        self.assertEqual(study.Run(device="cuda").device, "cuda")
        run = study.Run()
        self.assertEqual((run.image_size, run.resumed), ((64, 128, 128), False))

    def test_outside(self):
        run = study.Run(data="photos", seed=9)
        self.assertFalse(run.inside or run.resumed)
        self.assertEqual((run.data, run.seed, run.val, run.out, run.epochs, run.attempt), ("photos", 9, None, None, None, 1))
        with self.assertRaisesRegex(TypeError, "no 'size': it has data, val,"):
            study.Run(size=3)

    def test_broken_variables(self):
        for name, value in (("SEED", "x"), ("SEED", "-1"), ("THREADS", "0"), ("EPOCHS", "1.5"), ("ATTEMPT", "0"), ("IMAGE_SIZE", "big")):
            self.enter(**{"DL2_" + name: value})
            with self.assertRaisesRegex(ValueError, f"DL2_{name} is '{value}', not "):
                study.Run()
            self.enter()

    def test_keys(self):
        self.enter()
        run = study.Run()
        for given, key in (("/v/jpeg-50/val/rose/1.jpg", "val/rose/1"), ("/photos/val/rose/1.PNG", "val/rose/1"), ("val/rose/1.v2", "val/rose/1.v2"),
                           (17, "17"), (b"val/rose/1.webp", "val/rose/1"), ("/v/jpeg-50-more/1.jpg", "/v/jpeg-50-more/1")):
            self.assertEqual(run.key(given), key)
        os.makedirs(os.path.join(self.out, "photos/val"))
        here = os.getcwd()
        os.chdir(self.out)
        self.addCleanup(os.chdir, here)
        self.enter(DL2_VAL="photos")  # what is relative is read from the working folder
        self.assertEqual(study.Run().key(os.path.abspath("photos/val/1.jpg")), "val/1")
        self.assertEqual(study.Run().key("photos/val/1.jpg"), "val/1")


class Finish(Scratch):
    def test_a_whole_result(self):
        self.enter(DL2_ATTEMPT="1")
        run = study.Run()
        run.outcomes(["/v/jpeg-50/val/a/1.jpg", 'val/"b",\n2'], [0, 1])  # those of an epoch before
        run.outcomes(iter(["/v/jpeg-50/val/a/1.jpg", 'val/"b",\n2', "val/b/3", "val/b/4"]), [True, False, 1, decimal.Decimal(1)])
        run.outcomes(["/photos/val/a/1.png", "val/b/2"], [0.25, 0.5], original=True)
        run.epoch(0, 0.5, seconds=1.5, images=20, loss=2.25)
        run.epoch(1, 0.75)
        resamples = [0.5 + b / 1000 for b in range(100)]
        returned = run.finish("top1", 0.75, resamples=resamples, settings={"lr": 0.1})
        self.assertEqual(self.files(), ["epochs.jsonl", "outcomes-original.csv", "outcomes.csv", "result.json"])
        self.assertEqual(self.result(), returned)
        self.assertEqual(returned, {
            "schema": "dl2-result/1", "metric": "top1", "value": 0.75, "unit": "fraction", "higher_is_better": True,
            "settings": {"lr": 0.1}, "outcomes": "outcomes.csv", "resamples": resamples,
            "original": {"value": 0.375, "outcomes": "outcomes-original.csv"},
            "epochs": [{"value": 0.5, "seconds": 1.5, "images": 20}, {"value": 0.75}]})
        with open(os.path.join(self.out, "epochs.jsonl"), encoding="utf-8") as file:
            self.assertEqual(json.loads(file.readline()), {"epoch": 0, "value": 0.5, "seconds": 1.5, "images": 20, "loss": 2.25})
        self.assertEqual(self.rows(), [["key", "value"], ["val/a/1", "1.0"], ['val/"b",\n2', "0.0"], ["val/b/3", "1.0"], ["val/b/4", "1.0"]])
        self.assertEqual(self.rows("outcomes-original.csv"), [["key", "value"], ["val/a/1", "0.25"], ["val/b/2", "0.5"]])
        with self.assertRaisesRegex(RuntimeError, "finished already"):
            run.finish("top1", 0.75)

    def test_units(self):
        for unit, value in (("percent", 73.1), ("nats", -2.5), ("", 400), ("fraction", 1)):
            self.assertEqual(study.Run().finish("x", value, unit=unit, higher_is_better=False)["value"], value)

    def test_outside_nothing_is_written(self):
        here = os.getcwd()
        os.chdir(self.out)
        self.addCleanup(os.chdir, here)
        run = study.Run(data="photos")
        run.epoch(0, 0.5)
        run.outcomes(["a"], [1])
        self.assertEqual(run.finish("top1")["value"], 1)
        self.assertEqual(self.files(), [])
        study.Run(out="runs/1").finish("top1", 0.5)
        self.assertEqual(os.listdir("runs/1"), ["result.json"])

    def test_other_ranks_write_nothing(self):
        self.enter(RANK="1", DL2_ATTEMPT="1")
        run = study.Run()
        run.epoch(0, 0.5)
        run.finish("top1", 0.5)
        self.assertEqual(self.files(), [])

    def test_refused(self):
        self.enter(DL2_ATTEMPT="1")
        nan = float("nan")
        for error, message, call in (
                (TypeError, "metric is '', not a name", lambda run: run.finish("", 1)),
                (TypeError, "the value is missing", lambda run: run.finish("top1")),
                (ValueError, "the value is nan", lambda run: run.finish("top1", nan)),
                (TypeError, "the value is '0.5', which is not a number", lambda run: run.finish("top1", "0.5")),
                (TypeError, "the value is a list, not a number", lambda run: run.finish("top1", [0.5])),
                (ValueError, r"73.1, and a fraction is 0 to 1 \(unit='percent'", lambda run: run.finish("top1", 73.1)),
                (ValueError, "-1, and a percent is 0 to 100$", lambda run: run.finish("top1", -1, unit="percent")),
                (ValueError, "unit is '%': write 'percent'", lambda run: run.finish("top1", 50, unit="%")),
                (ValueError, "unit is 'Fraction': write 'fraction'", lambda run: run.finish("top1", 0.5, unit="Fraction")),
                (TypeError, "unit is None", lambda run: run.finish("top1", 0.5, unit=None)),
                (ValueError, "metric is 'mAP<50>': it has more than 64 bytes, a control", lambda run: run.finish("mAP<50>", 0.5)),
                (ValueError, "metric is 'a\\\\nb'", lambda run: run.finish("a\nb", 0.5)),
                (ValueError, "unit is '\u00e9+': it has more", lambda run: run.finish("x", 0.5, unit="\u00e9" * 33)),
                (ValueError, r"2e\+12, which is beyond 1e\+12", lambda run: run.finish("x", 2e12, unit="")),
                (ValueError, "100 resamples of the value and 101 on the original",
                 lambda run: run.finish("F1", 0.5, resamples=[0.5] * 100, original=0.5, original_resamples=[0.5] * 101)),
                (ValueError, "99 resamples: 100 to 100000", lambda run: run.finish("F1", 0.5, resamples=[0.5] * 99)),
                (ValueError, "resample 3 of the value is nan", lambda run: run.finish("F1", 0.5, resamples=[0, 0, 0, nan])),
                (TypeError, "original_resamples need original", lambda run: run.finish("F1", 0.5, original_resamples=[0.5] * 100)),
                (TypeError, "settings are not JSON", lambda run: run.finish("F1", 0.5, settings={"x": run})),
                (TypeError, "settings are not JSON", lambda run: run.finish("F1", 0.5, settings={"x": nan})),
                (ValueError, "2 keys and 1 values", lambda run: run.outcomes("ab", [1])),
                (ValueError, "no outcomes", lambda run: run.outcomes([], [])),
                (ValueError, "two outcomes have the key 'a'", lambda run: run.outcomes(["a.jpg", "b", "a.webp"], [1, 1, 1])),
                (ValueError, "the outcome of 'b' is nan", lambda run: run.outcomes("ab", [1, nan])),
                (TypeError, "the outcome of 'b' is None", lambda run: run.outcomes("ab", [1, None])),
                (ValueError, "the outcome of 'b' is 2, and a fraction", lambda run: (run.outcomes("ab", [0, 2]), run.finish("top1", 1))),
                (ValueError, "the value is 0.6, and the mean of its 2 outcomes 0.5",
                 lambda run: (run.outcomes("ab", [0, 1]), run.finish("top1", 0.6))),
                (ValueError, "in percent an image is 0 or 100",
                 lambda run: (run.outcomes("ab", [0, 1]), run.finish("top1", 50, unit="percent"))),
                (ValueError, "seconds of epoch 4 is -1", lambda run: run.epoch(4, seconds=-1)),
                (ValueError, "value of epoch 4 is inf", lambda run: run.epoch(4, float("inf")))):
            with self.assertRaisesRegex(error, message):
                call(study.Run())
        self.assertEqual(self.files(), [])
        run = study.Run()
        run.epoch(0, 40)
        with self.assertRaisesRegex(ValueError, "the value of epoch 0 is 40, and a fraction"):
            run.finish("top1", 0.5)


class Epochs(Scratch):
    def test_an_earlier_attempt(self):
        self.enter(DL2_ATTEMPT="1")
        for number in range(4):
            study.Run().epoch(number, number / 10)
        self.enter()
        run = study.Run()
        run.epoch(2, 0.7)  # it goes on after its checkpoint of epoch 1
        self.assertEqual([e["value"] for e in run.finish("top1", 0.7)["epochs"]], [0, 0.1, 0.7])

    def test_epochs_without_a_value(self):
        self.enter(DL2_ATTEMPT="1")
        run = study.Run()
        run.epoch(0, 0.5)
        run.epoch(1, seconds=2)
        self.assertNotIn("epochs", run.finish("top1", 0.7))


class Resamples(Scratch):
    def test_formula(self):
        self.assertEqual(study._mix(0), 0xE220A8397B1DCDAF)  # the first number of SplitMix64 from 0
        self.assertEqual(study.resample(0, 10), [3, 5, 7, 6, 8, 4, 1, 1, 1, 2])
        self.assertEqual(study.resample(1, 10), [3, 8, 5, 6, 5, 6, 3, 0, 1, 6])
        counts = [0] * 50
        for b in range(400):
            for i in study.resample(b, 50):
                counts[i] += 1
        self.assertTrue(all(320 < count < 480 for count in counts), counts)  # 400 on average, 20 the deviation
        for b, n in ((-1, 5), (0, 0), (0, 1 << 32)):
            self.assertRaises(ValueError, study.resample, b, n)

    def test_images_are_sorted(self):
        one = study.resamples(lambda picked: sum([10, 20, 30, 40][i] for i in picked), ["d", "c", "b", "a"], 5)
        self.assertEqual(one, study.resamples(lambda picked: sum([30, 10, 40, 20][i] for i in picked), ["b", "d", "a", "c"], 5))
        self.assertEqual(one, [sum([40, 30, 20, 10][i] for i in study.resample(b, 4)) for b in range(5)])
        self.assertEqual(len(study.resamples(lambda picked: 1, "ab")), 200)
        with self.assertRaisesRegex(ValueError, "same key"):
            study.resamples(lambda picked: 1, "aa")
        with self.assertRaisesRegex(ValueError, "resample 0 is nan"):
            study.resamples(lambda picked: float("nan"), "ab")


class Script(Scratch):
    def test_three_lines(self):
        """The functions of the module, in a process of their own."""
        self.enter(DL2_ATTEMPT="1")
        lines = f"from {study.__package__ or 'study'} import *\n" if study.__name__ == "study" else "from dl2.study import *\n"
        lines += "r = run(seed=5)\nassert r is run() and r.seed == 3\nepoch(0, 0.5)\n" \
                 "outcomes(['a.jpg', 'b.jpg'], [True, False])\nfinish('top1', 0.5)\n" \
                 "try:\n    run(seed=6)\nexcept RuntimeError as error:\n    print(error)\n"
        done = subprocess.run([sys.executable, *(["-S"] if sys.flags.no_site else []), "-c", lines], stdout=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout[:30]), (0, "this process has a run already"))
        self.assertEqual((self.result()["value"], self.rows()), (0.5, [["key", "value"], ["a", "1.0"], ["b", "0.0"]]))


if __name__ == "__main__":
    unittest.main()
