/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/page.h"

#include "common/scope.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>

static const char style[] =
    ":root{color-scheme:light dark;--page:#faf9f7;--card:#ffffff;--ink:#1f2328;--soft:#5b616b;"
    "--line:#e4e2dd;--accent:#2f6fde;--good:#14724c;--good-bg:#e5f3ec;--maybe:#8a5a00;"
    "--maybe-bg:#fbf0d9;--bad:#a8323a;--bad-bg:#fae6e6;--code:#f3f1ed}"
    "@media screen and "
    "(prefers-color-scheme:dark){:root{--page:#14171c;--card:#1b1f26;--ink:#e4e7eb;"
    "--soft:#a3aab5;--line:#2e343d;--accent:#6ea0f5;--good:#6fd3a5;--good-bg:#17352a;"
    "--maybe:#eec069;--maybe-bg:#3a2e14;--bad:#f0969b;--bad-bg:#3d2024;--code:#232830}}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--page);color:var(--ink);font:16px/1.6 system-ui,-apple-system,"
    "'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;-webkit-text-size-adjust:100%}"
    "main{max-width:70rem;margin:0 auto;padding:1.25rem 1.5rem 5rem}"
    "h1{font-size:1.9rem;line-height:1.2;letter-spacing:-.02em;font-weight:650;margin:0}"
    "h2{font-size:1.3rem;letter-spacing:-.01em;font-weight:650;margin:3.5rem 0 .75rem}"
    "h3{font-size:1rem;font-weight:600;margin:1.75rem 0 .5rem}"
    "p{margin:.5rem 0;max-width:46rem}.lead{color:var(--soft);font-size:1.05rem}"
    ".note{color:var(--soft);font-size:.9rem}.wide{max-width:none}a{color:var(--accent)}"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(28rem,100%),1fr));gap:1."
    "25rem;"
    "margin:1.75rem 0 1rem}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:14px;"
    "padding:1.4rem 1.5rem 1.2rem}"
    ".card .kicker{font-size:.78rem;font-weight:600;letter-spacing:.07em;text-transform:uppercase;"
    "color:var(--soft);display:flex;justify-content:space-between;align-items:center;gap:1rem}"
    ".card .name{font-size:1.75rem;font-weight:650;letter-spacing:-.02em;margin-top:.35rem;"
    "line-height:1.25}"
    ".card .gain{font-size:1.05rem;color:var(--accent);font-weight:600;margin-bottom:.6rem}"
    ".card p{font-size:.95rem;margin:.4rem 0 0}"
    ".badge{display:inline-block;font-size:.78rem;font-weight:600;letter-spacing:0;"
    "text-transform:none;padding:.05rem .55rem;border-radius:99px;white-space:nowrap}"
    ".within{color:var(--good);background:var(--good-bg)}"
    ".maybe{color:var(--maybe);background:var(--maybe-bg)}"
    ".beyond{color:var(--bad);background:var(--bad-bg)}"
    ".scroll{overflow-x:auto;border:1px solid var(--line);border-radius:14px;"
    "background:var(--card)}"
    "table{border-collapse:collapse;width:100%;font-size:.92rem;"
    "font-variant-numeric:tabular-nums}"
    "th,td{padding:.5rem .45rem;text-align:right;white-space:nowrap;"
    "border-top:1px solid var(--line)}"
    "thead th{border-top:0;color:var(--soft);font-weight:600;font-size:.8rem;vertical-align:bottom;"
    "line-height:1.35}"
    "th:first-child,td:first-child,.l{text-align:left}tbody th{font-weight:600}"
    ".first{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:1.75rem;"
    "align-items:start;margin-top:1rem}.first .plots{display:block}.first "
    "figure+figure{margin-top:1.25rem}"
    ".headline{font-size:1.5rem;line-height:1.3;letter-spacing:-.015em;margin:0 0 .75rem}"
    "p+.headline{margin-top:1.25rem}.headline strong{font-weight:650}.headline "
    "small{font-size:1rem;color:var(--soft)}"
    "table.heat td,table.heat thead th:not(:first-child):not(.l){text-align:center}"
    "thead td{border-top:0}table.heat th:first-child{position:sticky;left:0;"
    "background:var(--card)}table.heat .own{outline:2px solid var(--ink);"
    "outline-offset:-2px}"
    ".gallery{--cut:50%}.gallery .crops{display:flex;flex-wrap:wrap;gap:1rem;padding-top:.7rem}"
    ".ways{border:0;padding:0;margin:.5rem 0;font-size:.9rem;display:flex;flex-wrap:wrap;gap:.3rem "
    "1.1rem;align-items:center}.ways legend{float:left;font-weight:600;padding:0}"
    ".crop small+small{display:block}.strip summary small{color:var(--soft);font-weight:400}.strip "
    "summary::first-letter{"
    "text-transform:capitalize}"
    ".gallery:not(:has([value=slider]:checked)) .slide{visibility:hidden}"
    ".gallery:not(:has([value=slider]:checked)) .crop i{width:100%;border:0}"
    ".gallery:has([value=flicker]:checked) .crop i{animation:flicker 1s steps(1) infinite}"
    "@keyframes flicker{50%{visibility:hidden}}"
    "@media (prefers-reduced-motion:reduce){.gallery .crop i{animation-duration:4s!important}}"
    ".gallery:has([value=heat]:checked) .crop i{mix-blend-mode:difference}"
    ".gallery:has([value=heat]:checked) .crop div{filter:var(--heat)}"
    ".crop{padding:.6rem}.crop "
    "div{position:relative;isolation:isolate;width:var(--w);height:var(--h)}"
    ".crop img{display:block;width:var(--w);height:var(--h)}.crop img,.crop "
    "i{image-rendering:pixelated}"
    ".crop i{position:absolute;inset:0;background:var(--was);width:var(--cut);"
    "background-size:var(--w) var(--h);border-right:1px solid #fff;print-color-adjust:exact}"
    ".crop figcaption{padding:.35rem 0 0;max-width:var(--w);font-weight:400;font-size:.8rem}"
    ".slide{display:flex;gap:.7rem;align-items:center}"
    "input[type=range]{accent-color:var(--accent);width:14rem}"
    ":focus-visible{outline:2px solid var(--accent);outline-offset:2px}"
    "tr.pick{background:color-mix(in srgb,var(--accent) 8%,transparent)}"
    "th button{all:unset;cursor:pointer;display:inline-block;text-align:inherit}"
    "th button:focus-visible{outline:2px solid var(--accent)}"
    "th[aria-sort] button::after{content:' \\25B2';font-size:.7em}"
    "th[aria-sort=descending] button::after{content:' \\25BC'}"
    "td small{color:var(--soft)}"
    ".plots{display:flex;flex-wrap:wrap;gap:1.25rem}"
    ".plots>figure{flex:1 1 min(26rem,100%);max-width:46rem}"
    "figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:14px;"
    "padding:1rem 1rem .6rem;overflow-x:auto}"
    "figcaption{font-size:.9rem;font-weight:600;padding:0 .4rem .4rem}"
    "figure svg{display:block;width:100%;min-width:20rem;height:auto}"
    "figure svg text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif}"
    "figure svg rect[fill='#ffffff']{fill:none}figure svg [color='#FFFFFF']{color:var(--card)}"
    "figure a{font-size:.8rem}"
    "pre,code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.85rem}"
    "pre{background:var(--code);border-radius:10px;padding:.9rem 1.1rem;overflow-x:auto;"
    "line-height:1.5;margin:.5rem 0;"
    "white-space:pre-wrap}"
    "details{border-top:1px solid var(--line);padding:.7rem 0;margin-top:1.5rem}"
    "details+details{margin-top:0}details .scroll{margin-top:.7rem}"
    "summary{cursor:pointer;font-weight:600}"
    "ul.plain{padding-left:1.1rem;margin:.5rem 0}"
    ".warning{background:var(--maybe-bg);color:var(--maybe);border-radius:10px;"
    "padding:.7rem 1.1rem;margin:1.25rem 0;max-width:none}"
    "footer{margin-top:4rem;color:var(--soft);font-size:.85rem;border-top:1px solid var(--line);"
    "padding-top:1rem}"
    "@media (max-width:56rem){.first{grid-template-columns:minmax(0,1fr)}}"
    "@media (max-width:34rem){main{padding:2rem 1rem 3rem}.headline{font-size:1.3rem}}"
    "@media print{html{font-size:8.5pt}body{background:#fff;font-size:8.5pt}"
    "main{max-width:none;padding:0}h2{margin-top:2rem}p{max-width:none}"
    ".first{grid-template-columns:minmax(0,5fr) minmax(0,6fr)}.plots>figure{flex:1 1 40%}"
    "figure svg{min-width:0}"
    ".card,figure,tr{break-inside:avoid}h2,h3,h4{break-after:avoid}"
    ".scroll{overflow:visible;border:0}table{font-size:7pt}th,td{padding:.2rem .3rem;"
    "white-space:normal}tbody "
    "th{white-space:nowrap}td{print-color-adjust:exact}.ways{display:none}summary{break-after:"
    "avoid}"
    "details::details-content{content-visibility:visible;height:auto}}";

/* Heads of columns become buttons that sort the rows: first by falling numbers, then by rising
 * ones; texts the other way around. Units of bytes count; a dash is the last. It holds no < and no
 * &, so that the page is XML, too. */
static const char script[] =
    "document.querySelectorAll('table:not(.heat)').forEach(table=>{"
    "const body=table.tBodies[0];if(!body)return;if(3>body.rows.length)return;"
    "const units={B:1,kB:1e3,MB:1e6,GB:1e9,TB:1e12,PB:1e15,s:1,min:60,h:3600};"
    "const number=cell=>{const found=(cell?cell.textContent:'').trim().replace('\u2212','-')"
    ".match(/^(-?[0-9.]+(?:e[-+]?[0-9]+)?)\\s*([A-Za-z]*)/);"
    "return found?Number(found[1])*(units[found[2]]||1):NaN};"
    "Array.from(table.tHead.rows[0].cells).forEach((head,column)=>{"
    "const button=document.createElement('button');button.type='button';"
    "while(head.firstChild)button.append(head.firstChild);head.append(button);"
    "button.onclick=()=>{"
    "const rows=Array.from(body.rows),texts=rows.every(row=>isNaN(number(row.cells[column])));"
    "const was=head.getAttribute('aria-sort'),first=texts?'ascending':'descending';"
    "const way=was===first?(texts?'descending':'ascending'):first;"
    "const sign=way==='ascending'?1:-1;"
    "table.querySelectorAll('[aria-sort]').forEach(one=>one.removeAttribute('aria-sort'));"
    "head.setAttribute('aria-sort',way);"
    "const compare=(a,b)=>{const x=a.cells[column],y=b.cells[column];"
    "if(texts)return sign*x.textContent.localeCompare(y.textContent,undefined,{numeric:true});"
    "const p=number(x),q=number(y);"
    "return isNaN(p)?(isNaN(q)?0:1):isNaN(q)?-1:sign*(p-q)};"
    "body.append(...rows.sort(compare))}})})";

/* gnuplot writes its colours as attributes; rules win over those, so a
 * dark page can change them. */
static void write_dark_plots(struct dl2_bytes *html)
{
    dl2_html_markup(html, "@media screen and (prefers-color-scheme:dark){");
    for (size_t i = 0; dl2_plot_colours[i].light; i++) {
        unsigned r, g, b;
        if (sscanf(dl2_plot_colours[i].light, "#%2x%2x%2x", &r, &g, &b) != 3)
            continue;
        char line[512];
        snprintf(
            line, sizeof line,
            "figure svg [stroke='rgb(%3u, %3u, %3u)']{stroke:%s}"
            "figure svg [color='rgb(%3u, %3u, %3u)']{color:%s}"
            "figure svg [fill='rgb(%u,%u,%u)'],figure svg [fill='rgb(%3u, %3u, %3u)']{fill:%s}",
            r, g, b, dl2_plot_colours[i].dark, r, g, b, dl2_plot_colours[i].dark, r, g, b, r, g, b,
            dl2_plot_colours[i].dark);
        dl2_html_markup(html, line);
    }
    dl2_html_markup(html, "}");
}

/* For light and dark screens and for paper. */
static void write_style(struct dl2_bytes *html)
{
    dl2_html_markup(html, "<style>");
    dl2_html_markup(html, style);
    write_dark_plots(html);
    dl2_html_markup(html, "</style>");
}

/* Makes tables sortable; without it, or on paper, they are as they were written. */
static void write_script(struct dl2_bytes *html)
{
    dl2_html_markup(html, "<script>");
    dl2_html_markup(html, script);
    dl2_html_markup(html, "</script>");
}

#define SECTION(name) dl2_section_##name,
static void (*const sections[])(const struct dl2_page *page,
                                struct dl2_bytes *html) = {DL2_REPORT_SECTIONS(SECTION)};
#undef SECTION

void dl2_page_complete(struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    page->scores = dl2_image_scores_read(study, dl2_codec_anchor(study, &page->codecs));
    page->sizes = dl2_codec_sizes_find(study, &page->scores, &page->codecs);
    page->accuracy_sizes =
        dl2_accuracy_sizes_find(study, page->analyses, page->speeds, page->sizes.anchor);
    page->fronts = dl2_pareto_of_bytes(study, page->analyses);
    page->losses = dl2_loss_changes_find(study, page->analyses);
    page->briefs = dl2_keep(study->arch_count + 1, sizeof *page->briefs, "the answer");
    page->classes = dl2_keep(study->arch_count + 1, sizeof *page->classes, "classes");
    for (size_t a = 0; a < study->arch_count; a++) {
        struct dl2_page_classes *classes = &page->classes[a];
        page->briefs[a] = dl2_brief_make(study, &page->analyses[a], &page->speeds[a]);
        classes->classes = dl2_classes_find(&study->images[a]);
        classes->harms = dl2_class_harm_make(study, &page->analyses[a], a, &classes->classes);
        classes->shown = dl2_class_harm_shown(study, &page->analyses[a], classes->harms);
    }
}

void dl2_page_open(struct dl2_bytes *html, const char *question)
{
    dl2_html_markup(html,
                    "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'/>\n<meta "
                    "name='viewport' content='width=device-width, initial-scale=1'/>\n<title>");
    dl2_html_text(html, question);
    dl2_html_markup(html, "</title>\n");
    write_style(html);
    dl2_html_markup(html, "</head>\n<body><main>\n");
    dl2_html_element(html, "h1", "%s", question);
    dl2_html_markup(html, "\n");
}

void dl2_page_close(struct dl2_bytes *html)
{
    dl2_html_markup(html, "<footer>Written by dl2-report.</footer>\n</main>");
    write_script(html);
    dl2_html_markup(html, "</body></html>\n");
}

void dl2_page_write(const struct dl2_page *page, struct dl2_bytes *html)
{
    const struct dl2_study *study = page->study;
    DL2_CLEANUP(dl2_bytes_free)
    struct dl2_bytes body = DL2_BYTES_INIT; /* first, for it draws the plots */
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        sections[i](page, &body);
    /* A search may be all that there is. */
    const bool search = page->search.report && !study->variant_count;
    char question[2048];
    snprintf(question, sizeof question,
             search ? "What a search found: %s" : "How far can %s be compressed?", page->title);
    dl2_page_open(html, question);
    dl2_html_markup(html, "<p class='lead'>");
    const size_t raw = dl2_study_find(study, "raw");
    if (raw < study->variant_count && isfinite(study->variants[raw].bytes) &&
        isfinite(study->variants[raw].images))
        dl2_html_format(html, "%.0f images of %s, ", study->variants[raw].images,
                        dl2_part_bytes(study->variants[raw].bytes));
    if (study->variant_count)
        dl2_html_format(html, "%zu variant%s, %zu %s%s.", study->variant_count - 1,
                        study->variant_count == 2 ? "" : "s", study->run_count,
                        study->as_it_is ? "evaluation" : "training",
                        study->run_count == 1 ? "" : "s");
    dl2_html_markup(html, "</p>\n");
    if (page->plotter && page->plotter->problem[0])
        dl2_html_element(html, "p class='warning'", "%s", page->plotter->problem);
    dl2_append(html, body.data, body.size);
    dl2_page_close(html);
}
