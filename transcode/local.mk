# transcode
