-- SPDX-License-Identifier: BSD-2-Clause
-- The extension's objects, for CREATE EXTENSION dl2. Decoding is what takes time, hence the costs.
\echo Use "CREATE EXTENSION dl2" to load this file. \quit

CREATE FUNCTION dl2_info(image bytea, OUT format text, OUT width int, OUT height int,
    OUT channels int, OUT bits int, OUT alpha boolean, OUT orientation int, OUT quality int,
    OUT subsampling text, OUT progressive boolean, OUT color text)
AS 'MODULE_PATHNAME', 'dl2_sql_info' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION dl2_info(bytea) IS 'What the headers of an image file tell';

CREATE FUNCTION dl2_check(image bytea) RETURNS text
AS 'MODULE_PATHNAME', 'dl2_sql_check' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100000;
COMMENT ON FUNCTION dl2_check(bytea) IS 'Why an image cannot be decoded; null for one that can';

CREATE FUNCTION dl2_transcode(image bytea, codec text, quality int DEFAULT 75) RETURNS bytea
AS 'MODULE_PATHNAME', 'dl2_sql_transcode' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 500000;
COMMENT ON FUNCTION dl2_transcode(bytea, text, int) IS 'The image encoded by a codec, as dl2-transcode does';

CREATE FUNCTION dl2_score(reference bytea, variant bytea, metric text) RETURNS float8
AS 'MODULE_PATHNAME', 'dl2_sql_score' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 300000;
COMMENT ON FUNCTION dl2_score(bytea, bytea, text) IS 'The score of a variant by a metric of dl2-quality';

CREATE FUNCTION dl2_psnr(reference bytea, variant bytea) RETURNS float8
AS $$ SELECT @extschema@.dl2_score(reference, variant, 'psnr_rgb') $$
LANGUAGE SQL IMMUTABLE STRICT PARALLEL SAFE COST 300000;
COMMENT ON FUNCTION dl2_psnr(bytea, bytea) IS 'PSNR of red, green and blue, in dB; null for equal images';

CREATE FUNCTION dl2_ssim(reference bytea, variant bytea) RETURNS float8
AS $$ SELECT @extschema@.dl2_score(reference, variant, 'ssim') $$
LANGUAGE SQL IMMUTABLE STRICT PARALLEL SAFE COST 300000;
COMMENT ON FUNCTION dl2_ssim(bytea, bytea) IS 'SSIM of luma';

CREATE FUNCTION dl2_ms_ssim(reference bytea, variant bytea) RETURNS float8
AS $$ SELECT @extschema@.dl2_score(reference, variant, 'ms_ssim') $$
LANGUAGE SQL IMMUTABLE STRICT PARALLEL SAFE COST 300000;
COMMENT ON FUNCTION dl2_ms_ssim(bytea, bytea) IS 'MS-SSIM of luma; null for small images';

-- Training. The library of these functions is loaded when the first of them is called.

CREATE FUNCTION dl2_model(settings jsonb) RETURNS bytea
AS '$libdir/dl2_train', 'dl2_sql_model' LANGUAGE C VOLATILE STRICT COST 100000;
COMMENT ON FUNCTION dl2_model(jsonb) IS 'A fresh model, with settings as dl2-train has them';

CREATE FUNCTION dl2_order(images bigint, seed bigint DEFAULT 0, epoch bigint DEFAULT 0) RETURNS int[]
AS '$libdir/dl2_train', 'dl2_sql_order' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100000;
COMMENT ON FUNCTION dl2_order(bigint, bigint, bigint) IS 'The numbers of the training images, from 0, in the order of an epoch of dl2-train';

CREATE FUNCTION dl2_fit_add(internal, image bytea, label int, model bytea) RETURNS internal
AS '$libdir/dl2_train', 'dl2_sql_fit' LANGUAGE C VOLATILE COST 1000000;
CREATE FUNCTION dl2_fit_add(internal, image bytea, label int, model bytea, options jsonb) RETURNS internal
AS '$libdir/dl2_train', 'dl2_sql_fit' LANGUAGE C VOLATILE COST 1000000;
CREATE FUNCTION dl2_fit_add(internal, image bytea, label int, model bytea, options jsonb, number bigint) RETURNS internal
AS '$libdir/dl2_train', 'dl2_sql_fit' LANGUAGE C VOLATILE COST 1000000;
CREATE FUNCTION dl2_fit_end(internal) RETURNS bytea
AS '$libdir/dl2_train', 'dl2_sql_fitted' LANGUAGE C VOLATILE;
CREATE FUNCTION dl2_evaluate_add(internal, image bytea, label int, model bytea) RETURNS internal
AS '$libdir/dl2_train', 'dl2_sql_evaluate' LANGUAGE C VOLATILE COST 300000;
CREATE FUNCTION dl2_evaluate_end(internal) RETURNS jsonb
AS '$libdir/dl2_train', 'dl2_sql_evaluated' LANGUAGE C VOLATILE;

CREATE AGGREGATE dl2_fit(image bytea, label int, model bytea)
(SFUNC = dl2_fit_add, STYPE = internal, FINALFUNC = dl2_fit_end, FINALFUNC_MODIFY = READ_WRITE);
COMMENT ON AGGREGATE dl2_fit(bytea, int, bytea) IS 'The model, trained further on the rows in their order';
CREATE AGGREGATE dl2_fit(image bytea, label int, model bytea, options jsonb)
(SFUNC = dl2_fit_add, STYPE = internal, FINALFUNC = dl2_fit_end, FINALFUNC_MODIFY = READ_WRITE);
COMMENT ON AGGREGATE dl2_fit(bytea, int, bytea, jsonb) IS 'The same, with a device, and what to do with bad images';
CREATE AGGREGATE dl2_fit(image bytea, label int, model bytea, options jsonb, number bigint)
(SFUNC = dl2_fit_add, STYPE = internal, FINALFUNC = dl2_fit_end, FINALFUNC_MODIFY = READ_WRITE);
COMMENT ON AGGREGATE dl2_fit(bytea, int, bytea, jsonb, bigint) IS 'The same, with numbers of the images, which their crops depend on';
CREATE AGGREGATE dl2_evaluate(image bytea, label int, model bytea)
(SFUNC = dl2_evaluate_add, STYPE = internal, FINALFUNC = dl2_evaluate_end, FINALFUNC_MODIFY = READ_WRITE);
COMMENT ON AGGREGATE dl2_evaluate(bytea, int, bytea) IS 'Loss and top-1 of the model on the rows';
