/* SPDX-License-Identifier: BSD-2-Clause */
/* The arguments of dl2.Loader, and what its signature, its documentation and its stub say of them.
 * It calls nothing of Python's, so that a program can write the stub. */
#include "python/py_dl2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const decode_modes[] = {"cpu", "gpu", "hybrid", NULL};
static const char *const decode_inputs[] = {"plain", "region", "spliced", NULL};
static const char *const decode_engines[] = {"auto", "engines", "cores", NULL};

/* The library's settings, of struct py_settings' first member, and what Python has besides. */
_Static_assert(offsetof(struct py_settings, loader) == 0, "the library's offsets are ours");
#define OBJECT        DL2_SETTING_POINTER /* of py_arguments, not of py_settings */
#define AT(member)    offsetof(struct py_settings, member)
#define GIVEN(member) offsetof(struct py_arguments, member)

static const struct own {
    struct dl2_loader_setting setting;
    const char *type; /* of an object, but for None */
} own[] = {
    {{"dataset", OBJECT, GIVEN(dataset),
      "a dl2.Dataset, or the path of a dataset, or a list of these: all of them, joined as "
      "dl2.Dataset joins them, with `shares` or without"},
     "Dataset | str | bytes | os.PathLike[str] | "
     "Sequence[Dataset | str | bytes | os.PathLike[str]]"},
    {{"hold_timeout", DL2_SETTING_NUMBER, AT(hold_timeout),
      "seconds that the next batch waits where other threads hold all `depth` batches"},
     NULL},
    {{"external", OBJECT, GIVEN(external),
      "commands that decode the files of external codecs, by codec, such as {'cjxl': 'djxl %i "
      "%o'}: %i is the input file, %o the output file"},
     "dict[str, str]"},
    {{"sample_weights", OBJECT, GIVEN(weights),
      "a number for each sample, or the path of a file with lines KEY WEIGHT: draw samples with "
      "replacement, in proportion to it"},
     "Iterable[float] | str | os.PathLike[str]"},
    {{"decode", DL2_SETTING_CHOICE, AT(decode.mode),
      "where JPEGs are decoded: 'cpu'; 'gpu': on a card, which also crops and resizes them (needs "
      "nvJPEG; untested on hardware); 'hybrid': on both, shared by their speed. Images lie in the "
      "card's memory then: torch.from_dlpack() sees them there, NumPy can't. Needs dtype 'uint8', "
      "layout 'NHWC', a square image_size and interpolation 'bilinear', without augment, mask, "
      "boxes and "
      "decoded_cache_bytes",
      .words = decode_modes, .pixels = true},
     NULL},
    {{"gpu_input", DL2_SETTING_CHOICE, AT(decode.input),
      "what the card receives: 'plain': whole files; 'region': whole files, of which its JPEG "
      "decoders decode the crop; 'spliced': small JPEGs made of the restart intervals under the "
      "crop",
      .words = decode_inputs, .pixels = true},
     NULL},
    {{"gpu_engine", DL2_SETTING_CHOICE, AT(decode.engine),
      "what decodes there: 'engines': its JPEG decoders; 'cores': its cores; 'auto': engines for "
      "the images that they support, cores for the others",
      .words = decode_engines, .pixels = true},
     NULL},
    {{"device", DL2_SETTING_TEXT, AT(device),
      "the card that decodes, such as 'cuda:1'; None: the first"},
     NULL},
    {{"split", OBJECT, GIVEN(split),
      "of the dataset at a path: 'train', 'val', 'test', 'all' or another; None: 'train', or "
      "'val' without `train`"},
     "str"},
    {{"val_fraction", OBJECT, GIVEN(val_fraction),
      "of each class is for validation where the path comes without splits; None: 0.2. Given, it "
      "also splits the training images of a path without a split for validation"},
     "float"},
    {{"memory", OBJECT, GIVEN(memory),
      "memory(bytes) makes a buffer for the images of one of the `depth` batches, such as shared "
      "or pinned memory; None: memory of the loader's"},
     "Callable[[int], Any]"},
};
enum { OWN = sizeof own / sizeof *own };

struct py_settings py_settings_defaults(void)
{
    struct py_settings settings = {.loader = DL2_LOADER_DEFAULTS, .hold_timeout = 60};
    settings.loader.height = 224;
    settings.loader.world = 1;
    settings.loader.wait_for_release = true;
    return settings;
}

const struct dl2_loader_setting *py_argument_at(int number)
{
    if (number == 0)
        return &own[0].setting;
    for (const struct dl2_loader_setting *row = dl2_loader_settings(); row->name; row++)
        if (row->help && --number == 0)
            return row;
    return number < OWN ? &own[number].setting : NULL;
}

/* ---- Texts ---- */

/* As Python writes a float: the shortest text that is this number, with a point. */
static void put_number(double number, FILE *out)
{
    char text[32];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number && !strchr(text, 'e'))
            break;
    }
    fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void put_default(const struct dl2_loader_setting *setting, FILE *out)
{
    const struct py_settings defaults = py_settings_defaults();
    const void *value = (const char *)&defaults + setting->offset;
    switch (setting->kind) {
    case DL2_SETTING_UNSIGNED:
    case DL2_SETTING_SIZE:
        fprintf(out, "%u", *(const unsigned *)value);
        return;
    case DL2_SETTING_UINT64:
        fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)value);
        return;
    case DL2_SETTING_BOOL:
        fputs(*(const bool *)value ? "True" : "False", out);
        return;
    case DL2_SETTING_NUMBER:
        put_number(*(const double *)value, out);
        return;
    case DL2_SETTING_RANGE:
        fputc('(', out);
        put_number(((const double *)value)[0], out);
        fputs(", ", out);
        put_number(((const double *)value)[1], out);
        fputc(')', out);
        return;
    case DL2_SETTING_CHOICE:
        fprintf(out, "'%s'", setting->words[*(const unsigned *)value]);
        return;
    default:
        fputs("None", out);
    }
}

static void put_type(const struct dl2_loader_setting *setting, FILE *out)
{
    static const char *const types[] = {
        [DL2_SETTING_UNSIGNED] = "int",
        [DL2_SETTING_SIZE] = "int | tuple[int, int] | tuple[int, int, int]",
        [DL2_SETTING_UINT64] = "int",
        [DL2_SETTING_BOOL] = "bool",
        [DL2_SETTING_NUMBER] = "float",
        [DL2_SETTING_RANGE] = "tuple[float, float]",
        [DL2_SETTING_CHANNELS] = "Sequence[float] | None",
        [DL2_SETTING_SHARES] = "Sequence[float] | None",
        [DL2_SETTING_CHOICE] = "str",
        [DL2_SETTING_TEXT] = "str | None",
        [DL2_SETTING_NAMES] = "str | Sequence[str] | None",
    };
    const char *type = setting->kind == OBJECT ? "object" : types[setting->kind];
    for (int i = 0; i < OWN; i++)
        if (setting == &own[i].setting && own[i].type)
            type = own[i].type;
    fprintf(out, "%s%s", type,
            setting->kind == OBJECT && setting != &own[0].setting ? " | None" : "");
}

void py_arguments_write(bool typed, FILE *out)
{
    const struct dl2_loader_setting *setting;
    for (int i = 0; (setting = py_argument_at(i)); i++) {
        const char *comma = typed ? ",\n                " : ", ";
        fprintf(out, "%s%s%s", i ? comma : "", i == PY_POSITIONS ? "*, " : "", setting->name);
        if (typed) {
            fputs(": ", out);
            put_type(setting, out);
        }
        if (i == 0) /* the dataset */
            continue;
        fputs(typed ? " = " : "=", out);
        put_default(setting, out);
    }
}

static void describe_arguments(FILE *out)
{
    enum { INDENT = 14, WIDTH = 92 };
    const struct dl2_loader_setting *setting;
    for (int i = 0; (setting = py_argument_at(i)); i++) {
        int column = fprintf(out, "%-*s", INDENT - 1, setting->name);
        column = column < INDENT ? column : WIDTH;
        for (const char *word = setting->help; *word;) {
            const int length = (int)strcspn(word, " ");
            if (column + 1 + length > WIDTH)
                column = fprintf(out, "\n%*s", INDENT - 1, "") - 1;
            column += fprintf(out, " %.*s", length, word);
            word += length + strspn(word + length, " ");
        }
        fputc('\n', out);
    }
}

/* ---- The documentation: this, what each argument is, and the last part ---- */

static const char introduction[] =
    "Epochs of batches of a dl2.Dataset, or of the dataset at a path.\n\n"
    "    for images, labels in loader:\n\n"
    "goes through one epoch: the first time epoch 0, then 1, and so on, also after a `break`;\n"
    "start_epoch() and resume() say otherwise. len(loader) is an epoch's batches. Each is a\n"
    "dl2.Batch: images [n, height, width, channels] (layout 'NHWC') or [n, channels, height,\n"
    "width] ('NCHW') and labels, int64 [n], both dl2.Arrays; and .indices, .epoch, .step,\n"
    ".targets, .crop_boxes, .masks, .boxes. Volumes are float32 [n, channels, depth, height, "
    "width]\n"
    "unless dtype and layout are given, and clips have frames for depth. The last batch of an\n"
    "epoch may hold fewer than `batch`, unless drop_last.\n\n"
    "The loader owns `depth` batches. The images of one are not copied; their memory is filled\n"
    "anew when the last array, buffer or tensor that sees them is gone. Where all are still in\n"
    "use, the next batch waits for another thread to let go of one, for hold_timeout seconds, and\n"
    "then raises dl2.Error; without another thread it does so at once. Labels and indices are\n"
    "copies and may be kept.\n\n"
    "Images are turned upright as EXIF says, and transparent ones are laid on white.\n"
    "Arguments that would have no effect beside the others are a ValueError.\n\n";
static const char last_part[] =
    "A loader can be pickled; its copy reads the same dataset anew, and goes on where it was.\n"
    "Threads: one at a time. Waiting releases the GIL; Ctrl-C ends it. Arrays may die in any\n"
    "thread. The child of a fork needs a loader of its own.";

char *py_loader_doc(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fputs("Loader(", out);
    py_arguments_write(false, out);
    fprintf(out, ")\n--\n\n%s", introduction);
    describe_arguments(out);
    fprintf(out, "\n%s", last_part);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
