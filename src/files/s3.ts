/** Stores files in S3-compatible object storage, for installations on several machines. */

import type { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import type { s3Of } from '../config/config.js';
import { systemRandom } from '../random.js';
import { type BlobStore, isKey, type ListedFile, newKey, pathOfKey } from './blob_store.js';

const connect_ms_max = 3_000;
const idle_ms_max = 20_000;

async function ifThere<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === 404) return null;
    throw error;
  }
}

/**
 * Creates a storage in a bucket. If the bucket is missing, `put` reports the missing bucket, but reads report a missing
 * file.
 */
export function createS3Store(
  options: NonNullable<ReturnType<typeof s3Of>>,
  random = systemRandom,
): BlobStore & { close(): void } {
  const { bucket: Bucket } = options;
  const client = new S3Client({
    endpoint: options.url,
    region: options.region,
    forcePathStyle: options.pathStyle,
    credentials: { accessKeyId: options.keyId, secretAccessKey: options.secret },
    // Turns off the newer checksums, because many compatible servers do not support them.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: connect_ms_max,
      requestTimeout: idle_ms_max,
      socketTimeout: idle_ms_max,
    },
  });
  return {
    async put(key, bytes) {
      await client.send(
        new PutObjectCommand({ Bucket, Key: pathOfKey(key), Body: bytes, ContentLength: bytes.length }),
      );
    },
    async open(key, start, end) {
      const range = `bytes=${start}-${end}`;
      const found = await ifThere(
        client.send(new GetObjectCommand({ Bucket, Key: pathOfKey(key), Range: range })),
      );
      return found && (found.Body as Readable);
    },
    async size(key) {
      const found = await ifThere(client.send(new HeadObjectCommand({ Bucket, Key: pathOfKey(key) })));
      return found?.ContentLength ?? null;
    },
    async remove(key) {
      await client.send(new DeleteObjectCommand({ Bucket, Key: pathOfKey(key) }));
    },
    async check() {
      const Key = pathOfKey(newKey(random));
      await client.send(new PutObjectCommand({ Bucket, Key, Body: 'petrel' }));
      await client.send(new DeleteObjectCommand({ Bucket, Key }));
    },
    async list(after, limit) {
      const found: ListedFile[] = [];
      // Continues with the next page of the list if a page contains no files of Petrel. Uses ListObjects version 1,
      // which works on every server and can start after any key.
      for (let place = after === '' ? undefined : pathOfKey(after); found.length < limit; ) {
        const page = await client.send(
          new ListObjectsCommand({
            Bucket,
            MaxKeys: limit - found.length,
            ...(place && { Marker: place }),
          }),
        );
        for (const { Key = '', LastModified } of page.Contents ?? []) {
          const key = Key.slice(Key.lastIndexOf('/') + 1);
          if (isKey(key) && pathOfKey(key) === Key && LastModified)
            found.push({ key, at: LastModified.getTime() });
          place = Key;
        }
        if (!page.IsTruncated) break;
      }
      return found;
    },
    close: () => client.destroy(),
  };
}
