/** Opens the file storage that is configured. */

import { type Config, s3Of } from '../config/config.js';
import type { Random } from '../random.js';
import type { Time } from '../time.js';
import type { BlobStore } from './blob_store.js';
import { createFolderStore } from './folder.js';

/** Throws a ConfigError if the settings of the S3 storage are incomplete. */
export async function openBlobStore(
  config: Config,
  time: Time,
  random: Random,
): Promise<BlobStore & { close?(): void }> {
  const s3 = s3Of(config);
  if (s3 === undefined) return createFolderStore(config.FILES_DIR, time, random);
  // Loads the S3 client only when it is needed. It loads slowly, and most installations do not use S3.
  const { createS3Store } = await import('./s3.js');
  return createS3Store(s3, random);
}

export async function filesProblem(blobs: Pick<BlobStore, 'check'>, config: Config): Promise<string | null> {
  try {
    await blobs.check();
    return null;
  } catch (error) {
    const where =
      config.FILES_S3_URL === undefined
        ? `FILES_DIR ${config.FILES_DIR}`
        : `the bucket ${config.FILES_S3_BUCKET} of FILES_S3_URL ${new URL(config.FILES_S3_URL).host}`;
    const { name, message, code } = error as Error & { code?: string };
    return `${where} cannot be written: ${message || code || name}`;
  }
}
