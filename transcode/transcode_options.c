/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/transcode_options.h"

#include "codec/video_encoder.h"

#include "dataset/subset_options.h"
#include "dataset/write/writer.h"
#include "transcode/colors.h"
#include "transcode/frames.h"
#include "transcode/preprocess.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_CONTAINERS = 16 };

static const char *const lists[] = {[DL2_LIST_CODECS] = "codecs",
                                    [DL2_LIST_CONTAINERS] = "containers",
                                    [DL2_LIST_SETTINGS] = "settings",
                                    [DL2_LIST_VARIANTS] = "variants",
                                    NULL};

static const char *const no_yes[] = {[false] = "no", [true] = "yes", NULL};
static const char *containers[MAX_CONTAINERS + 1]; /* filled in by dl2_transcode_details() */

#define AT(member) offsetof(struct dl2_transcode_arguments, member)

static int parse_crop_area(const char *text, void *value, struct dl2_error *error)
{
    double *area = value;
    char rest;
    if (sscanf(text, "%lf,%lf%c", &area[0], &area[1], &rest) == 2 && area[0] > 0 &&
        area[0] <= area[1] && area[1] <= 1)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not two parts from 0 to 1, as 0.08,1",
                         text);
}

static const char *const orders[] = {"1", "3", NULL};
static const char *const label_orders[] = {
    [DL2_LABELS_NEAREST] = "0", [DL2_LABELS_LINEAR] = "1", [DL2_LABELS_MLPERF] = "mlperf", NULL};

const struct dl2_option dl2_transcode_rows[] = {
    {DL2_OPTION_GROUP, .help = "Options for encoding:"},
    {DL2_OPTION_TEXT, "codec", 'c', "LIST",
     "Codecs to encode with, of those of --list codecs, each with settings if wanted, as in "
     "jpeg,jpeg:effort=1:subsampling=444, which are part of the variant's name; the last may be an "
     "external one, as two commands: 'NAME=ENCODE %i %o %q; DECODE %i %o'",
     AT(codecs), .list = "codecs", .commands = DL2_ENCODES_ALL | DL2_MAKES_FRAMES,
     .also = "format,encoder", .basic = true},
    {DL2_OPTION_TEXT, "q", 'q', "LIST",
     "Qualities of lossy codecs, 1 to 100, higher is better, for example 10,25,50 or 5:95:10 "
     "(from, to, step); of videos their CRFs, lower is better, for example 23,28,35",
     AT(qualities), .commands = DL2_ENCODES_ALL | DL2_MAKES_FRAMES, .also = "quality,qualities",
     .basic = true},
    {DL2_OPTION_TEXT, "target", 0, "METRIC=VALUE,...",
     "A quality for each image instead: the lowest at which it has this score by a metric of "
     "dl2-quality, as ssim=0.95, or the highest at which it has as many bytes or bits per pixel at "
     "most, as bytes=20000 or bpp=0.5; each is a variant of its own, as jpeg-ssim0.95",
     AT(targets), .commands = DL2_ENCODES, .basic = true},
    {DL2_OPTION_TEXT, "q-range", 0, "FROM:TO", "Qualities that --target tries", AT(range),
     .unset = "1:100", .commands = DL2_ENCODES},
    {DL2_OPTION_CHOICE, "target-rule", 0, "at-least|nearest",
     "File that an image has with --target: the smallest that meets it (the largest that keeps a "
     "size), or the one nearest to it on either side",
     AT(each.rule), .words = dl2_target_rules, .commands = DL2_ENCODES},
    {DL2_OPTION_REAL, "target-tolerance", 0, "SHARE",
     "Closeness to the target at which a search may end early, as a share of what is lost (mean "
     "squared error, 1 - SSIM, 100 - SSIMULACRA2, a distance) or of the bytes; JPEG tries all "
     "qualities for a score",
     AT(each.tolerance), .min = 0, .max = 1, .commands = DL2_ENCODES},
    {DL2_OPTION_UINT, "probes", 0, "N",
     "Files that a search makes of an image at most; JPEG makes none for a score", AT(each.probes),
     .min = 1, .max = 100, .commands = DL2_ENCODES},
    {DL2_OPTION_CHOICE, "on-miss", 0, "best|copy|fail",
     "Where no quality meets the target: take the nearest file, copy the source's if it is of the "
     "variant's codec, or fail the image",
     AT(each.miss), .words = dl2_target_misses, .commands = DL2_ENCODES},
    {DL2_OPTION_CHOICE, "subsampling", 's', "420|422|444",
     "Chroma subsampling of codecs that have the choice", AT(subsampling),
     .words = dl2_subsamplings, .unset = "420", .commands = DL2_ENCODES | DL2_MAKES_FRAMES,
     .basic = true},
    {DL2_OPTION_TEXT, "effort", 'e', "[CODEC=]N|auto",
     "Effort of an encoder, or several, for example webp=6,png=9; recompress --help says what "
     "it means of each codec",
     AT(efforts), .commands = DL2_ENCODES_ALL | DL2_MAKES_FRAMES, .basic = true},
    {DL2_OPTION_CHOICE, "restart", 0, "tiles|none",
     "Restart intervals of JPEG, with which the loader decodes only what a crop needs, for 0 to "
     "3% more bytes; progressive files have none",
     AT(restart), .words = dl2_restarts, .unset = "tiles",
     .commands = DL2_ENCODES | DL2_MAKES_FRAMES},
    {DL2_OPTION_SWITCH, "never-larger", 0, "yes|no",
     "Copy a source file unchanged into a lossy variant of its own codec if it is at or below the "
     "variant's quality, with chroma no finer (known of JPEG alone), or no larger than what would "
     "be encoded; not if it is resized, must be turned upright, has transparent pixels, or is a "
     "JPEG of RGB, "
     "CMYK or arithmetic codes",
     AT(run.never_larger), .words = no_yes, .commands = DL2_ENCODES},
    {DL2_OPTION_TEXT, "resize-shorter", 0, "LIST",
     "Resize images to these lengths of their shorter side, pixels, for example 160,320,full; each "
     "is a variant of its own, as jpeg-75@320; smaller images keep their size; frames takes one "
     "length",
     AT(sizes[DL2_SHORT]), .unset = "full", .commands = DL2_ENCODES | DL2_MAKES_FRAMES | DL2_FITS,
     .also = "size,resize,shorter-side,image-size", .basic = true},
    {DL2_OPTION_TEXT, "max-side", 0, "LIST", "The same by the longer side: 512 is --fit 512x512",
     AT(sizes[DL2_MAX_SIDE]), .unset = "full", .commands = DL2_ENCODES | DL2_FITS},
    {DL2_OPTION_TEXT, "fit", 0, "WxH,...",
     "The same by both sides: no wider than W and no higher than H, as jpeg-75@640x480",
     AT(sizes[DL2_FIT]), .unset = "full", .commands = DL2_ENCODES | DL2_FITS},
    {DL2_OPTION_CHOICE, "filter", 0, "lanczos|box|bilinear",
     "Filter of resized images, as Pillow has it: lanczos is the best one for random crops, "
     "bilinear for validation that resizes to the same size; one other than lanczos is part of "
     "the variant's name, as in jpeg-75@320-box",
     AT(filter), .words = dl2_filter_words, .commands = DL2_ENCODES | DL2_MAKES_FRAMES | DL2_FITS,
     .basic = true},
    {DL2_OPTION_PARSE, "background", 'b', "RRGGBB", "Color under transparent pixels",
     AT(run.decode.background), .parse = dl2_parse_color, .unset = "white",
     .commands = DL2_ENCODES},
    {DL2_OPTION_CHOICE, "color", 0, "keep|convert|drop",
     "Colors that are not sRGB (ICC profiles, PNG's gamma, PQ and the like): keep numbers and "
     "description, convert the numbers to sRGB, or keep the numbers and drop the description",
     AT(run.color), .words = dl2_color_rules, .commands = DL2_ENCODES},
    {DL2_OPTION_CHOICE, "metadata", 0, "keep|drop|usual",
     "EXIF and XMP: keep them, with the orientation of upright pixels and without thumbnail; drop "
     "them, so that no file is copied that has any, or comments; or usual: files that are encoded "
     "have none, files that are copied keep theirs",
     AT(run.metadata), .words = dl2_metadata_rules, .commands = DL2_ENCODES, .basic = true},
    {DL2_OPTION_TABLE, .table = dl2_samples_options, .offset = AT(run.samples),
     .commands = DL2_ENCODES | 1 << DL2_COPY | DL2_SURVEYS | DL2_FITS | DL2_IDENTIFIES},
    {DL2_OPTION_TABLE, .table = dl2_member_options, .offset = AT(run.members),
     .commands =
         DL2_ENCODES | 1 << DL2_COPY | 1 << DL2_INDEX | DL2_SURVEYS | DL2_FITS | DL2_IDENTIFIES},
    {DL2_OPTION_TABLE, .table = dl2_subset_options, .offset = AT(run.subset),
     .commands = 1 << DL2_COPY},
    {DL2_OPTION_UINT64, "max-pixels", 0, "N", "Refuse images with more pixels",
     AT(run.decode.max_pixels), .min = 1, .max = 4294967295.0,
     .commands = DL2_ENCODES_ALL | DL2_MAKES_FRAMES | DL2_SURVEYS | DL2_FITS},
    {DL2_OPTION_UINT64, "memory", 0, "MIB",
     "Memory for all images in work together, which limits how many large ones are in work at "
     "once",
     AT(memory_mib), .min = 1, .max = 1u << 30, .unset = "half of the machine's memory",
     .commands = DL2_ENCODES_ALL | DL2_PREPROCESSES},
    {DL2_OPTION_TABLE, .table = dl2_external_options, .offset = AT(external),
     .commands = DL2_ENCODES | DL2_SURVEYS | DL2_FITS},
    {DL2_OPTION_TABLE, .table = dl2_bands_options, .offset = AT(run.decode.drop_bands),
     .commands = DL2_ENCODES | DL2_SURVEYS | DL2_FITS},

    {DL2_OPTION_GROUP, .help = "Options for videos:"},
    {DL2_OPTION_PARSE, "fps", 0, "N",
     "Frames of each second that clips have, for example 8, 12.5 or 30000/1001", AT(frame_rate),
     .parse = dl2_frame_rate_parse, .commands = DL2_MAKES_FRAMES, .also = "frame-rate,rate"},
    {DL2_OPTION_TABLE, .table = dl2_labels_options, .offset = AT(run.labels),
     .commands = DL2_MAKES_FRAMES | 1 << DL2_COPY},

    {DL2_OPTION_GROUP, .help = "Options for raw volumes:"},
    {DL2_OPTION_PARSE, "spacing", 0, "D,H,W",
     "Resample volumes and labels to this distance of voxels, mm, along depth, height and width",
     AT(preprocess.spacing), .parse = dl2_preprocess_parse_spacing, .unset = "the volumes' own",
     .commands = DL2_PREPROCESSES},
    {DL2_OPTION_CHOICE, "order", 0, "1|3", "Resample volumes linearly or by cubic B-splines",
     AT(preprocess.cubic), .words = orders, .commands = DL2_PREPROCESSES},
    {DL2_OPTION_CHOICE, "label-order", 0, "0|1|mlperf",
     "Resample labels to the nearest voxel, to the class with the largest linear share, or to the "
     "voxel that MLPerf's 3D U-Net takes, up to one beside the nearest",
     AT(preprocess.labels), .words = label_orders, .commands = DL2_PREPROCESSES},
    {DL2_OPTION_PARSE, "orientation", 0, "SIDES",
     "Turn volumes and labels by their affine matrix, so that depth, height and width run to these "
     "sides of the body, such as SPL: superior, posterior, left",
     AT(preprocess.towards), .parse = dl2_preprocess_parse_towards,
     .unset = "axes stay as they lie in the files", .commands = DL2_PREPROCESSES},
    {DL2_OPTION_PARSE, "clip", 0, "LOW,HIGH", "Make values beyond these the nearer of them",
     AT(preprocess.clip), .parse = dl2_preprocess_parse_clip, .unset = "none",
     .commands = DL2_PREPROCESSES},
    {DL2_OPTION_PARSE, "normalize", 0, "MEAN,DEVIATION|dataset",
     "Subtract a mean and divide by a deviation: these numbers, or with dataset those of each "
     "channel over all voxels for training, which reads the volumes twice",
     AT(preprocess), .parse = dl2_preprocess_parse_normal, .unset = "none",
     .commands = DL2_PREPROCESSES, .also = "mean,std"},
    {DL2_OPTION_CHOICE, "format", 0, "npy|nii|nii.gz", "Format of the volumes and labels",
     AT(preprocess.format), .words = dl2_preprocess_formats, .commands = DL2_PREPROCESSES},

    {DL2_OPTION_GROUP, .help = "Options for output:"},
    {DL2_OPTION_CHOICE, "container", 0, "NAME",
     "Container of the variants, one of --list containers", AT(container), .words = containers,
     .commands = DL2_WRITES | DL2_ENCODES_ALL, .basic = true},
    {DL2_OPTION_UINT, "shard", 0, "MIB",
     "Size at which another chunk or shard begins; chunks have at most 10000 images", AT(shard_mib),
     .min = 1, .max = 1u << 20, .commands = DL2_WRITES},
    {DL2_OPTION_UINT, "shards", 0, "N",
     "Divide each split into N shards, whose numbers of images differ by at most one, instead of "
     "by "
     "size",
     AT(run.pack.shards), .min = 1, .max = 1u << 20, .unset = "as many as --shard makes",
     .commands = DL2_ENCODES | 1 << DL2_COPY},
    {DL2_OPTION_UINT64, "shuffle", 0, "SEED",
     "Pack images in a random order, the same for the same seed (0 if none is given), so that a "
     "program that reads one shard after the other meets all classes from the beginning",
     AT(shuffle), .max = 9e15, .implied = "0", .unset = "SOURCE's order, by class",
     .commands = DL2_WRITES, .basic = true},
    {DL2_OPTION_TEXT, "json", 0, "FILE", "Write the survey to FILE, too", AT(json),
     .commands = DL2_SURVEYS, .basic = true},
    {DL2_OPTION_TEXT, "csv", 0, "FILE", "Write a table with a line for each image to FILE, too",
     AT(files.csv), .commands = DL2_SURVEYS},
    {DL2_OPTION_TEXT, "groups", 0, "FILE",
     "Write the survey's near duplicates to FILE, too, a line KEY, tab, GROUP for each image, as "
     "dl2-report --group takes it",
     AT(files.groups), .commands = DL2_SURVEYS},
    {DL2_OPTION_TEXT, "facts", 0, "FOLDER",
     "At the end, write each variant's dl2-variant.json to FOLDER/VARIANT, too", AT(facts),
     .commands = DL2_ENCODES_ALL},
    {DL2_OPTION_REAL, "time-limit", 0, "SECONDS",
     "End when the variants have taken so long, and say how many images they have; the same "
     "command with a higher limit goes on",
     AT(run.time_limit), .min = 0.001, .max = 1e9, .unset = "none", .commands = DL2_ENCODES},
    {DL2_OPTION_FLAG, "force", 'f', NULL, "Make everything again", AT(run.force),
     .commands = DL2_WRITES | DL2_ENCODES_ALL | DL2_PREPROCESSES, .also = "overwrite",
     .basic = true},
    {DL2_OPTION_FLAG, "prune", 0, NULL,
     "Remove images of earlier runs whose source is gone (with copy every image of a folder "
     "DEST that SOURCE lacks), with what lay beside them, instead of naming them",
     AT(run.prune), .commands = DL2_WRITES | DL2_ENCODES_ALL | DL2_PREPROCESSES, .basic = true},

    {DL2_OPTION_GROUP, .help = "Options for several processes and machines:"},
    {DL2_OPTION_TABLE, .table = dl2_share_options, .offset = AT(share),
     .commands = DL2_ENCODES_ALL},

    {DL2_OPTION_GROUP, .help = "Options for fitted tables:"},
    {DL2_OPTION_UINT, "input-size", 0, "N",
     "Side of the training's input, pixels: tables are fitted to random crops of images, resized "
     "to it; and --target's input_psnr and input_ssim compare images at it",
     AT(each.input_size), .min = 1, .max = DL2_MAX_INPUT_SIZE, .commands = DL2_FITS | DL2_ENCODES},
    {DL2_OPTION_PARSE, "crop-area", 0, "MIN,MAX",
     "The part of an image's area that the training's crops have, as of dl2-train", AT(crop_area),
     .parse = parse_crop_area, .unset = "0.08,1", .commands = DL2_FITS},
    {DL2_OPTION_TEXT, "sensitivity", 0, "FILE",
     "Fit the tables to a network, too: FILE is what dl2-train evaluate --sensitivity wrote",
     AT(sensitivity), .commands = DL2_FITS},

    {DL2_OPTION_GROUP, .help = "Options for scripts:"},
    {DL2_OPTION_CHOICE, "list", 0, "WHAT",
     "Check the other options, list what this build has, and exit: codecs (name, lossy or "
     "lossless, extension), containers (name, read or read,write, extensions, summary), settings "
     "(codec, name, values, default, help) or variants, that the other options would make (name, "
     "codec, quality or -, place in DEST, file of tables, which need not be there, or -); one line "
     "each, with tabs between the columns",
     AT(list), .words = lists, .commands = DL2_ENCODES},
    {DL2_OPTION_END},
};

char *dl2_transcode_details(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fprintf(out, "Codecs of this build:\n");
    for (size_t i = 0; dl2_codec_at(i); i++) {
        const struct dl2_codec *codec = dl2_codec_at(i);
        if (!dl2_codec_encodes(codec))
            continue;
        fprintf(out, "  %-5s ", codec->name);
        if (codec->video)
            fprintf(out, "videos of clips: quality 1-%d is the CRF, lower is better; default %d",
                    codec->video->max_crf, codec->video->usual_crf);
        else
            fputs(codec->lossy ? "quality 1-100" : "lossless", out);
        fputs(codec->has_subsampling ? ", subsampling" : "", out);
        if (codec->max_effort >= 0 && codec->usual_effort < 0)
            fprintf(out, ",\n        effort 0-%d (%s; default auto)", codec->max_effort,
                    codec->effort_help);
        else if (codec->max_effort >= 0)
            fprintf(out, ",\n        effort 0-%d (%s; default %d)", codec->max_effort,
                    codec->effort_help, codec->usual_effort);
        for (size_t s = 0; codec->settings && codec->settings[s].name; s++)
            fprintf(out, ",\n        %s: %s", codec->settings[s].name, codec->settings[s].help);
        fprintf(out, "\n");
    }
    fprintf(out, "\nContainers:\n");
    for (size_t i = 0; i < MAX_CONTAINERS && (containers[i] = dl2_container_name(i)); i++)
        fprintf(out, "  %-6s  %s\n", containers[i], dl2_container_summary(containers[i]));
    fputs(
        "\n"
        "Makes DEST/CODEC-QUALITY, or with a size DEST/CODEC-QUALITY@SIZE, for each, with the "
        "tree of SOURCE, a dl2-variant.json that "
        "describes it, and a dl2-variant.jsonl with one line per image. EXIF orientation is "
        "applied, gray stays gray where the codec can, and transparent pixels are laid over the "
        "background. The content of a file, not its name, decides whether it is an image. DEST "
        "may not lie in SOURCE: the next run would take the variants for images of it.\n\n"
        "A rerun makes only what is missing or out of date: no file, another size than was "
        "written, a source of another size or time, other options, another version of the "
        "codec's library. A run that was killed leaves no half-written file; run it again to "
        "complete it.\n\n"
        "With --resize-shorter, --max-side or --fit, images become smaller and never larger, with "
        "their "
        "aspect. Masks beside them (of the image's size, gray or with a palette, or called "
        "NAME.mask.EXT or NAME.seg.EXT) get the same size, by the nearest pixel. Coordinates in "
        "other files beside them stay those of the source. Variants in folders get SOURCE's files "
        "in COCO's JSON with scaled coordinates.\n\n"
        "The same command without --part makes what parts have left, and completes the variants, "
        "with the bytes of one run.\n\n"
        "What lies beside images comes along as it is: files of the same name up to the "
        "extension, members of a sample in tar, metadata in gulp. What a container cannot hold "
        "is counted on stderr.\n\n"
        "With --container other than folder, a variant is a few large files, in a folder for "
        "each split if SOURCE has splits, with a dl2-index.bin that makes opening fast and holds "
        "a checksum of every image. It is made as a whole: if anything is out of date, all of it "
        "is made again.\n\n"
        "SOURCE may be an address: https://HOST/PATH of shards with their index, or "
        "s3://BUCKET/PREFIX, also of a folder. With --container=tar or gulp, DEST may be "
        "s3://BUCKET/PREFIX: variants are sent to s3://BUCKET/PREFIX/CODEC-QUALITY, and by "
        "copy the dataset to s3://BUCKET/PREFIX itself. Until it is whole, readers refuse "
        "it.\n\n"
        "If DEST is postgresql://HOST/DATABASE?table=NAME, a variant is the table "
        "NAME_CODEC_QUALITY of a PostgreSQL database, and by copy DEST is the table NAME. "
        "Each is written as a whole, in one transaction. The table's comment and its column "
        "\"made\" hold what dl2-variant.json and dl2-variant.jsonl say.\n\n"
        "If SOURCE holds volumes (.npy, .nii, .nii.gz), variants hold files NAME.slices: tar "
        "files of an image for each slice, by a codec of up to 16 bits (jp2, jxl, jxl_lossless). "
        "Whole numbers that span less than 65,536 are held exactly; other values are quantized "
        "to 16 bits, and the run says so. Labels beside volumes come along as they are.\n\n"
        "With h264, h265 or av1 SOURCE must hold clips or videos, and a variant has a video for "
        "each, "
        "CLASS/CLIP.mp4, with all its frames. Sides must be even unless --subsampling is 444. "
        "Frames "
        "without a rate are shown at 25 a second. Such a variant lies in folders.\n\n"
        "An external codec is two commands: in them %i is the input file, %o the output "
        "file, %q the quality and %% a percent sign. The encoder's input is PNG; the decoder may "
        "write any format that this build reads. Commands run without a shell; quotes keep "
        "blanks, commas and semicolons in a word. Without %q there is one variant, called NAME. "
        "To read such a variant, "
        "pass --decoder to each program: none runs commands that a dataset comes with.",
        out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
