# tests of transcode
