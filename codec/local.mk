# codec
