#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fills a bucket of moto's server, and prints the keys of a user that may read it: on one line the
access key and its secret, on the next those of a session, with its token.

    s3.py ENDPOINT FOLDER BUCKET
"""
import json
import os
import sys

import boto3

endpoint, root, bucket = sys.argv[1:]
common = dict(endpoint_url=endpoint, aws_access_key_id="x", aws_secret_access_key="x", region_name="us-east-1")
iam, s3, sts = (boto3.client(name, **common) for name in ("iam", "s3", "sts"))
policy = json.dumps({"Version": "2012-10-17",
                     "Statement": [{"Effect": "Allow", "Action": ["s3:*", "sts:*"], "Resource": "*"}]})
iam.create_user(UserName="reader")
iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=policy)
iam.create_role(RoleName="role", AssumeRolePolicyDocument=policy)
iam.put_role_policy(RoleName="role", PolicyName="read", PolicyDocument=policy)
key = iam.create_access_key(UserName="reader")["AccessKey"]
session = sts.assume_role(RoleArn="arn:aws:iam::123456789012:role/role", RoleSessionName="session")["Credentials"]
s3.create_bucket(Bucket=bucket)
for folder, _, names in os.walk(root):
    for name in names:
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            s3.put_object(Bucket=bucket, Key="data/" + os.path.relpath(path, root), Body=file)
print(key["AccessKeyId"], key["SecretAccessKey"])
print(session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"])
