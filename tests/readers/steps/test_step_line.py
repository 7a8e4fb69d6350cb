"""Lines as frameworks print them, and what each says of a step."""

# ruff: noqa: E501
# Lines of logs stand as they were printed.

from __future__ import annotations

import math

import pytest

from gpudiag.readers._steps.dialects import DIALECTS
from gpudiag.readers._steps.step_line import step_of

LINES: dict[str, tuple[str, dict[str, object]]] = {
    "megatron": (
        " [2025-04-13 23:41:20] iteration       20/    1000 | consumed samples:          320 | elapsed time per iteration "
        "(ms): 820.7 | learning rate: 4.000000E-05 | global batch size:    16 | lm loss: 1.072453E+01 |",
        {"step": 20, "total": 1000, "step_s": 0.8207, "samples_s": 16 / 0.8207, "meant": "window"},
    ),
    "megatron with throughput": (
        " iteration       80/     100 | elapsed time per iteration (ms): 1548.1 | mem usages: 0.8131 | throughput per GPU "
        "(TFLOP/s/GPU): 57.6 | Tokens per second per GPU (Tok/s/GPU): 2645.8 | global batch size:    16 |",
        {"step": 80, "tokens_s": 2645.8, "tokens_of": "gpu", "gpu_tflops": 57.6},
    ),
    "megatron-deepspeed": (
        " iteration        6/      10 | consumed samples:         9216 | elapsed time per iteration (ms): 347319.2 | global "
        "batch size:  1536 | samples per second: 4.457 | tokens per gpu per second (tgs): 142.612 | TFLOPs: 153.38 |",
        {"step": 6, "tokens_s": 142.612, "tokens_of": "gpu", "gpu_tflops": 153.38},
    ),
    "megatron of somebody": (
        " iteration        6/      10 | elapsed time per iteration (ms): 2000.0 | tokens per second: 8192.0 |",
        {"step": 6, "tokens_s": 8192.0, "tokens_of": None},
    ),
    "megatron of 2021": (
        " iteration      200/    1000 | consumed samples:          800 | elapsed time per iteration (ms): 430.0 |",
        {"step": 200, "total": 1000, "step_s": 0.43},
    ),
    "fairseq": (
        "2021-02-03 10:11:12 | INFO | train_inner | epoch 002:    100 / 2436 loss=5.1, ppl=34.3, wps=12345.6, ups=2.5, "
        "wpb=4938, bsz=128, num_updates=2536, lr=0.0005, gnorm=1.2, train_wall=40, wall=1033",
        {"step": 2536, "epoch": 2, "step_s": 0.4, "tokens_s": 12345.6, "tokens_of": "all", "elapsed_s": 1033.0},
    ),
    "fairseq json": (
        '[2021-02-03 10:11:12,123][train_inner][INFO] - {"epoch": 3, "update": 2.5, "loss": "4.1", "wps": "9000", "ups": '
        '"0.5", "num_updates": "400", "wall": "812"}',
        {"step": 400, "epoch": 3, "step_s": 2.0, "tokens_s": 9000.0, "elapsed_s": 812.0},
    ),
    "mmengine": (
        "2022/08/22 15:51:56 - mmengine - INFO - Epoch(train) [1][10/1563]  lr: 1.0000e-03  eta: 0:18:23  time: 0.1414  "
        "data_time: 0.0077  memory: 392  loss: 5.3465",
        {"step": 10, "total": 1563, "epoch": 1, "step_s": 0.1414, "loader_s": 0.0077, "meant": "window"},
    ),
    "mmengine by iterations": (
        "08/26 14:29:05 - mmengine - INFO - Iter(train) [   50/160000]  base_lr: 1.0e-02  eta: 1 day, 4:13:53  time: 0.5460"
        "  data_time: 0.0083",
        {"step": 50, "total": 160_000, "epoch": None, "step_s": 0.546, "loader_s": 0.0083},
    ),
    "mmcv": (
        "2021-08-22 15:51:56,123 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.978e-03, eta: 1 day, 4:13:53, time: 0.546, "
        "data_time: 0.083, memory: 3769, loss: 1.2",
        {"step": 50, "total": 7330, "epoch": 1, "step_s": 0.546, "loader_s": 0.083},
    ),
    "detectron2": (
        "[11/14 20:41:39 d2.utils.events]:  eta: 0:01:51  iter: 19  total_loss: 1.589  loss_cls: 1.439  time: 0.1136  "
        "data_time: 0.0048  lr: 4.9953e-06  max_mem: 2030M",
        {"step": 20, "step_s": 0.1136, "loader_s": 0.0048, "meant": "running"},
    ),
    "detectron2 of today": (
        "[11/14 20:41:39 d2.utils.events]:  eta: 0:01:51  iter: 39  total_loss: 1.589  time: 0.1136  last_time: 0.1001  "
        "data_time: 0.0048  last_data_time: 0.0050   lr: 4.9953e-06",
        {"step": 40, "step_s": 0.1136, "loader_s": 0.0048},
    ),
    "yolox": (
        "2022-08-07 20:23:28 | INFO     | yolox.core.trainer:261 - epoch: 1/300, iter: 10/14786, mem: 584Mb, iter_time: "
        "0.224s, data_time: 0.002s, total_loss: 14.6, lr: 2.287e-11",
        {"step": 10, "total": 14786, "epoch": 1, "step_s": 0.224, "loader_s": 0.002},
    ),
    "paddle": (
        "[2021/12/01 10:11:12] ppocr INFO: epoch: [1/500], global_step: 10, lr: 0.0005, loss: 1.2, avg_reader_cost: "
        "0.25000 s, avg_batch_cost: 0.50000 s, avg_samples: 16.0, ips: 32.00000 samples/s, eta: 1:00:00",
        {"step": 10, "epoch": 1, "step_s": 0.5, "loader_s": 0.25, "samples_s": 32.0},
    ),
    "paddle detection": (
        "[12/01 10:11:12] ppdet.engine INFO: Epoch: [0] [  20/1250] learning_rate: 0.0003 loss: 1.2 eta: 1:02:03 "
        "batch_cost: 0.5678 data_cost: 0.0123 ips: 14.1 images/s",
        {"step": 20, "total": 1250, "epoch": 0, "step_s": 0.5678, "loader_s": 0.0123},
    ),
    "timm": (
        "Train: 0 [  50/312 ( 16%)]  Loss: 6.95 (6.94)  Time: 0.320s,  800.12/s  (0.333s,  768.20/s)  LR: 1.000e-05  "
        "Data: 0.010 (0.020)",
        {"step": 51, "total": 312, "epoch": 0, "step_s": 0.333, "loader_s": 0.02, "samples_s": 768.2, "meant": "epoch"},
    ),
    "imagenet": (
        "Epoch: [0][  10/5005]\tTime  0.325 (  0.543)\tData  0.000 (  0.123)\tLoss 7.0e+00 (7.1e+00)",
        {"step": 11, "total": 5005, "epoch": 0, "step_s": 0.543, "loader_s": 0.123, "meant": "epoch"},
    ),
    "swin": (
        "[2021-04-01 10:00:00 swin_tiny](main.py 210): INFO Train: [0/300][10/1251]\teta 1:02:03 lr 0.000001\ttime 0.3212 "
        "(0.4321)\tloss 6.9 (6.9)",
        {"step": 11, "total": 1251, "epoch": 0, "step_s": 0.4321},
    ),
    "torchvision": (
        "Epoch: [3]  [  10/5005]  eta: 1:23:45  lr: 0.1  img/s: 123.4  loss: 6.9 (6.9)  time: 0.9966  data: 0.0023  max mem: 1",
        {"step": 11, "total": 5005, "epoch": 3, "step_s": 0.9966, "loader_s": 0.0023},
    ),
    "word-lm": (
        "| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 33.55 | loss  6.80 | ppl   900.00",
        {"step": 201, "total": 2983, "epoch": 1, "step_s": 0.03355, "meant": "window"},
    ),
    "nanogpt": (
        "iter 100: loss 3.2712, time 250.10ms, mfu 12.10%",
        {"step": 101, "step_s": 0.2501, "meant": "step", "mfu_pct": 12.1},
    ),
    "llm.c": (
        "step    7/18865 | loss 11.0 (+nanz)| norm 15.0 (+nanz)| lr 1.0e-07 | 3201.40 ms | 48.7% bf16 MFU | 163772 tok/s",
        {"step": 7, "total": 18865, "step_s": 3.2014, "tokens_s": 163_772.0, "tokens_of": "all", "mfu_pct": 48.7},
    ),
    "modded-nanogpt": (
        "step:100/1750 train_loss:4.1 train_time:12340ms step_avg:123.40ms",
        {"step": 100, "total": 1750, "meant": "training", "elapsed_s": 12.34, "step_s": 0.1234},
    ),
    "torchtitan": (
        "[rank3]:[titan] 2025-01-01 10:00:00,123 - root - INFO - step: 10  loss:  7.9  memory: 40.00GiB(50.0%)  tps: 2,345  "
        "tflops: 123.4  mfu: 33.3%",
        {
            "step": 10,
            "tokens_s": 2345.0,
            "tokens_of": "gpu",
            "mfu_pct": 33.3,
            "gpu_tflops": 123.4,
            "rank": 3,
        },
    ),
    "deepspeed": (
        "[2023-05-01 10:00:00,000] [INFO] [timer.py:215:stop] epoch=0/micro_step=80/global_step=10, RunningAvgSamplesPerSec"
        "=12.3, CurrSamplesPerSec=12.5, MemAllocated=10.0GB",
        {"step": 10, "samples_s": 12.5},
    ),
    "maxtext": (
        "completed step: 4, seconds: 0.503, TFLOP/s/device: 180.123, Tokens/s/device: 16286.4, total_weights: 65536, loss: 5.0",
        {"step": 5, "step_s": 0.503, "tokens_s": 16286.4, "tokens_of": "gpu", "gpu_tflops": 180.123, "meant": "step"},
    ),
    "nemo": (
        "Training epoch 0, iteration 9/399 | lr: 0.0003 | global_batch_size: 512 | global_step: 9 | reduced_train_loss: 2.941 "
        "| train_step_timing in s: 0.2555 | consumed_samples: 5120",
        {"step": 10, "total": None, "epoch": 0, "step_s": 0.2555},
    ),
    "litgpt": (
        "Epoch 1 | iter 16 step 1 | loss train: 1.2, val: n/a | iter time: 345.67 ms (step)",
        {"step": 16, "epoch": 1, "step_s": 0.34567},
    ),
    "hf bar": (
        " 13%|█▎        | 310/2436 [3:55:12<27:02:11, 45.83s/it]",
        {"step": 310, "total": 2436, "elapsed_s": 14_112.0, "step_s": 45.83, "meant": "running"},
    ),
    "bar within a line": (
        "iter: 310/2436 loss: 1.02 lr: 1e-5 [15:18:01<15:43:56, 45.82s/it]",
        {"step": 310, "total": 2436, "elapsed_s": 55_081.0, "step_s": 45.82},
    ),
    "bar of days": (
        " 50%|█████     | 3/6 [1 day, 0:00:10<1 day, 0:00:10, 28803.33s/it]",
        {"step": 3, "elapsed_s": 86_410.0},
    ),
    "lightning": (
        "Epoch 3:  45%|████▌     | 45/100 [00:05<00:06,  8.50it/s, v_num=0, train_loss=0.3]",
        {"step": 45, "total": 100, "epoch": 3, "elapsed_s": 5.0, "step_s": 1 / 8.5},
    ),
    "ultralytics": (
        "      1/100      5.2G      1.234     1.5       1.1         16        640: 100%|██████████| 92/92 [00:20<00:00,  4.48it/s]",
        {"step": 92, "total": 92, "epoch": 1, "elapsed_s": 20.0},
    ),
    "ultralytics of today": (
        "      2/100      5.2G      1.234     1.5       1.1         16        640: 100% ━━━━━━━━━━━━ 92/92 4.5it/s 20.3s",
        {"step": 92, "total": 92, "epoch": 2, "elapsed_s": 20.3, "step_s": 1 / 4.5},
    ),
    "bar of epochs": (
        "Epochs:  30%|███       | 3/10 [05:10<12:00, 103.4s/it]",
        {"step": 3, "unit": "epoch", "step_s": 103.4},
    ),
    "lightning of unknown length": (
        "Training: |          | 65/? [00:13<00:00,  4.64it/s, train_loss=0.119]",
        {"series": "Training:|", "step": 65, "total": None, "step_s": 1 / 4.64, "elapsed_s": 13.0},
    ),
    "tqdm of unknown length": (
        "train: 1234it [10:02,  2.05it/s, loss=0.31, lr=3e-4]",
        {"series": "train:|", "step": 1234, "total": None, "step_s": 1 / 2.05, "elapsed_s": 602.0},
    ),
    "keras 2": (
        "100/100 [==============================] - 12s 120ms/step - loss: 0.3 - accuracy: 0.9",
        {"step": 100, "total": 100, "elapsed_s": 12.0, "step_s": 0.12},
    ),
    "keras 2 without a bar": (
        "100/100 - 14s - loss: 1.2 - accuracy: 0.5 - val_loss: 1.3 - val_accuracy: 0.4 - 14s/epoch - 140ms/step",
        {"step": 100, "total": 100, "elapsed_s": 14.0, "step_s": 0.14},
    ),
    "keras 3 within an epoch": (
        "45/100 ━━━━━━━━━━━━━━━━━━━━ 6s 120ms/step - loss: 0.3",
        {"step": 45, "total": 100, "step_s": 0.12, "elapsed_s": 5.4},
    ),
    "keras 3 without a bar": (
        "200/200 - 31s - 153ms/step - loss: 1.0197 - val_loss: 1.0145",
        {"step": 200, "total": 200, "step_s": 0.153, "elapsed_s": 31.0},
    ),
    "lightning of rich": (
        "Epoch 0/2  ━━━━━━━━╺━━━━━━━━ 98/200 0:00:19 • 0:00:21 4.94it/s train_loss: 0.271",
        {"series": "Epoch #/#|200", "epoch": 0, "step": 98, "total": 200, "step_s": 1 / 4.94, "elapsed_s": 19.0},
    ),
    "lightning of rich in a narrow terminal": (
        "Epoch 0/2  ━━━━━━━━╸━━━━━━━━ 100/200 0:01:20 •        4.94it/s train_loss: 0.589",
        {"epoch": 0, "step": 100, "elapsed_s": 80.0},
    ),
    "keras 3": (
        "100/100 ━━━━━━━━━━━━━━━━━━━━ 12s 120ms/step - accuracy: 0.9 - loss: 0.3",
        {"step": 100, "total": 100, "elapsed_s": 12.0, "step_s": 0.12},
    ),
    "epoch": ("Epoch 3/100 train loss 0.51 time: 91.17 s", {"step": 3, "total": 100, "unit": "epoch", "step_s": 91.17}),
    "epoch by a clock": ("epoch 2 took 1:31", {"step": 2, "unit": "epoch", "step_s": 91.0}),
    "epoch in minutes": ("[EPOCH 1] time: 11.3min | 30.0 batch/s", {"step": 1, "unit": "epoch", "step_s": 678.0}),
    "plain speed": ("step 1200 | loss 2.31 | 0.45 s/step", {"step": 1200, "step_s": 0.45}),
    "plain rate behind the name of an evaluation": (
        "[train] best val 0.31 step 1200 loss 2.31 0.45 s/step",
        {"step": 1200, "step_s": 0.45},
    ),
    "a wait for data before the time of the step": (
        "step 20 | loss 2.31 | data 0.040 s/it | total 0.320 s/it",
        {"step": 20, "step_s": 0.32},
    ),
    "parts of a step before all of it": (
        "step 20 loss 2.31 data time: 40ms/it fwd: 100ms/it bwd=150ms/it step: 320ms/it",
        {"step": 20, "step_s": 0.32},
    ),
    "the mean of all steps before the time of the last": (
        "step 20 | loss 2.31 | avg 0.40 s/it cur 0.32 s/it",
        {"step": 20, "step_s": 0.32},
    ),
    "the mean time of all steps before that of the last": (
        "step 20 | loss 2.31 | avg step time 0.40s | step time 0.32s",
        {"step": 20, "step_s": 0.32},
    ),
    "a mean time of a step": ("step 1200/9000 loss 2.31 avg step 320ms", {"step": 1200, "step_s": 0.32}),
    "a time of a step beside others": (
        "step 1200/9000 loss 2.31 data_time=40.0ms compute_time=0.28s step_time=0.320s",
        {"step": 1200, "step_s": 0.32},
    ),
    "a time of a step before it": ("Step time: 320.5 ms | Step 1200 | Loss 2.31", {"step": 1200, "step_s": 0.3205}),
    "a time per batch": ("Iteration 1200/9000, loss = 2.31, time per batch: 0.320s", {"step": 1200, "step_s": 0.32}),
    "a time of a step behind samples": (
        "step 1200 | avg_step_time: 0.320s | throughput: 12.5 samples/s",
        {"step": 1200, "step_s": 0.32, "samples_s": 12.5},
    ),
    "plain rate": ("Step: 1200/9000, loss: 2.31, 4.0 it/s", {"step": 1200, "total": 9000, "step_s": 0.25}),
    "build-nanogpt": (
        "step     7 | loss: 9.000000 | lr 1.0e-04 | norm: 1.5 | dt: 519.32ms | tok/sec: 1009560.97",
        {"step": 8, "total": None, "step_s": 0.51932, "meant": "step", "tokens_s": 1_009_560.97, "tokens_of": "all"},
    ),
    "build-nanogpt's nanochat": (
        "step 00010/21400 (0.05%) | loss: 11.09 | dt: 4301.00ms | tok/sec: 1,121,902 | mfu: 10.9",
        {"step": 11, "total": 21400, "step_s": 4.301, "tokens_s": 1_121_902.0},
    ),
    "plain tokens in thousands": ("step 10 | loss: 11.09 | tok/sec: 1,121,902", {"step": 10, "tokens_s": 1_121_902.0}),
    "plain tokens before their unit": ("step 10 loss 3.1, 121,902.5 tokens/s", {"step": 10, "tokens_s": 121_902.5}),
    "plain tokens behind a loss": ("step 10 loss=2.1,300 tok/s", {"step": 10, "tokens_s": 300.0}),
    "plain tokens": (
        "[rank 2] step=40 loss=3.1 tokens/s: 51200",
        {"step": 40, "tokens_s": 51_200.0, "tokens_of": None, "rank": 2},
    ),
    "labels before their numbers": (
        "step 10/1000 loss 2.8917 it/s 0.667",
        {"step": 10, "total": 1000, "step_s": 1 / 0.667},
    ),
    "labels before their numbers, at times of a day": (
        "2026-03-10 09:00:34,120 [INFO] step 10/1000 loss 2.58 tokens/s 21845 it/s 0.667 eta 0:12:30",
        {"step": 10, "step_s": 1 / 0.667, "tokens_s": 21_845.0},
    ),
    "labels of two words": (
        "iter 10 loss 2 grad norm 1.25 lr 0.0003 s/it 1.500 samples/s 21.3",
        {"step": 10, "step_s": 1.5, "samples_s": 21.3},
    ),
    "units behind their numbers": (
        "step 10 loss 2.58 21845 tok/s 1500 ms/step lr 3e-4",
        {"step": 10, "step_s": 1.5, "tokens_s": 21_845.0},
    ),
    "units behind numbers with a name": (
        "step 10 loss 2.58 throughput 21845 tok/s 1500 ms/step",
        {"step": 10, "step_s": 1.5, "tokens_s": 21_845.0},
    ),
    "labels with signs": (
        "step: 10 loss: 2.58 it/s: 0.5 tokens/s: 300",
        {"step": 10, "step_s": 2.0, "tokens_s": 300.0},
    ),
    "a unit that may belong to either number": (
        "step 10 perf 21845 tok/s 1500 ms/step",
        {"step": 10, "step_s": 1.5, "tokens_s": math.nan},
    ),
    "thousands of tokens": (
        "Step: 10 | Loss: 2.8 | Tokens/s: 21.85K | Tokens: 3.1K",
        {"step": 10, "tokens_s": 21_850.0},
    ),
    "thousands of tokens before their unit": (
        "step=10 loss=2.8 throughput=1.5M tok/s",
        {"step": 10, "tokens_s": 1.5e6},
    ),
    "a time of a step before the step": ("ms/step 1500 step 10 loss 2.1", {"step": 10, "step_s": 1.5}),
    "two counts of the same pace": (
        "Epoch 1, Step 20/100, loss 0.5, global step 120, 4.0 it/s",
        {"step": 120, "total": None, "epoch": 1, "step_s": 0.25},
    ),
    "steps of the optimizer beside batches": (
        "iter 80/800 (optimizer step 10) loss 3.1 | 0.5 s/it | 21845 tok/s",
        {"step": 10, "total": None, "step_s": math.nan, "tokens_s": 21_845.0},
    ),
    "updates beside steps": ("step 80 | update 10/100 | 300 tok/s", {"step": 10, "total": 100, "tokens_s": 300.0}),
    "a day of an update": ("step 80 loss 2 | 3 it/s | last update 2026-01-01 12:00", {"step": 80, "step_s": 1 / 3}),
    "accelerate": (
        "06/26/2025 10:00:00 - INFO - __main__ - Epoch: 1, Step: 20/100, Loss: 0.5, 32.5 samples/sec",
        {"step": 20, "total": 100, "epoch": 1, "samples_s": 32.5},
    ),
}
OTHERS = [
    "1234it [10:02,  2.05it/s]",
    "Validation DataLoader 0: |          | 65/? [00:13<00:00,  4.64it/s, val_loss=0.1]",
    "45/100 ━━━━━━━━━━━━━━━━━━━━ 66s 1s/step - loss: 0.3",
    "Validation ━━━━━━━━━━━━━━━━━ 1/50    0:00:00 •        0.00it/s",
    "Map: 100%|██████████| 1000/1000 [00:01<00:00, 900.00 examples/s]",
    "Loading checkpoint shards:  50%|█████     | 1/2 [00:03<00:03,  3.41s/it]",
    "Evaluating:  50%|█████     | 5/10 [00:03<00:03,  1.41it/s]",
    "                 Class     Images  Instances      Box(P          R      mAP50: 100%|██████████| 4/4 [00:01<00:00, 2.0it/s]",
    "model.safetensors: 100%|██████████| 438M/438M [00:03<00:00, 120MB/s]",
    "100%|██████████| 5/5 [00:11<00:00, 5.0 files/s]",
    "2022/08/22 15:51:56 - mmengine - INFO - Epoch(val)  [2][  50/1843]    eta: 0:01:45  time: 0.0588  data_time: 0.0022",
    " 45/100 [============>.................] - ETA: 5s - loss: 0.3",
    "Batches:  40%|####      | 4/10 [00:01<00:02,  2.40it/s]",
    "step 1: download the data",
    "Trial 7 pruned at epoch 3. GPU 85%",
    "Starting epoch 3",
    "val step 20 loss 0.4 | 3 it/s",
    "step:100/600 val_loss:3.9000 train_time:49924ms step_avg:499.24ms",
    "[val] step 10/20 loss 0.4 0.6 s/it",
    "Epoch 3 [Val] step 10/20 loss 0.4 0.6 s/it",
    "validation epoch 3 step 10/20 loss 0.4 0.6 s/it",
    "2026-03-01 10:00:00,123 Epoch 3 Eval step 10/20 loss 0.4",
    "2026-03-01 10:00:00,123 INFO epoch=3 step=10 phase=val lr=0.1 loss=0.4",
    "Batch size 32, 4.0 it/s expected",
    "Saved checkpoint at iteration 500",
    "",
]


@pytest.mark.parametrize("name", LINES)
def test_what_a_line_says(name: str) -> None:
    line, want = LINES[name]
    said = step_of(line, stamped=False)
    assert said is not None
    for field, value in want.items():
        found = getattr(said, field)
        assert found == (pytest.approx(value, nan_ok=True) if isinstance(value, float) else value), field


def test_the_step_of_the_optimizer_counts_and_not_its_parts() -> None:
    """What the speed of such a line is of is open, so that without a timestamp it tells of no time."""
    line = "epoch: 0 | micro step: 7 | global step: 1 | loss: 2.998 | 4.0 it/s"
    said = step_of(line, stamped=True)
    assert said is not None and (said.step, said.total) == (1, None) and math.isnan(said.step_s)
    assert step_of(line, stamped=False) is None


def test_what_is_not_said_is_unknown() -> None:
    said = step_of(LINES["megatron of 2021"][0], stamped=False)
    assert said is not None and math.isnan(said.loader_s) and said.rank is None and said.epoch is None


@pytest.mark.parametrize("line", OTHERS)
def test_other_lines_are_no_steps(line: str) -> None:
    assert step_of(line, stamped=True) is None


@pytest.mark.parametrize(
    "line",
    [
        "step 10 loss 0,45 0,32 s/it",  # a decimal comma, or two numbers
        "step 10 loss 0.4 data batch time 0.04s",
        "step 10 loss 0.4 epoch time 60s",
        "step 10 loss 0.4 eta 0:00:50, remaining time 50 s",
        "step 10 acc 0.4 time 3.2s",
        "micro step 40 step 10 loss 0.4 step time 0.3s",  # of a step or of its parts
    ],
)
def test_a_time_of_which_it_is_open_what_it_is_of(line: str) -> None:
    assert step_of(line, stamped=False) is None


def test_a_stamp_makes_a_plain_step_count() -> None:
    line = "2026-01-05 10:00:00 epoch 3 step 137 loss 0.44 lr 1e-9"
    assert step_of(line, stamped=False) is None
    said = step_of(line, stamped=True)
    assert said is not None and (said.step, said.epoch, said.unit) == (137, 3, "step")


def test_every_dialect_is_tested() -> None:
    said = {line.series for (line,) in ((step_of(text, stamped=False),) for text, _ in LINES.values()) if line}
    assert {dialect.name for dialect in DIALECTS} <= said


def test_a_rate_that_is_no_number_is_unknown() -> None:
    said = step_of("   2/100   5.2G   640: 100% ━━━━━━━━━━━━ 92/92 4.5.1it/s 20.3s", stamped=False)
    assert said is not None and (said.step, said.elapsed_s) == (92, 20.3) and math.isnan(said.step_s)
