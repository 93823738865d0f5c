/** Chooses the storage of files that the settings name. */
import { type Config, requireSettings } from '../config.js';
import type { BlobStore } from './blob_store.js';
import { createFolderStore } from './folder.js';

/** Error: ConfigError when S3-compatible storage is asked for and a setting of it is missing. */
export async function openBlobStore(config: Config): Promise<BlobStore & { close?(): void }> {
  if (config.FILES_S3_URL === undefined) return createFolderStore(config.FILES_DIR);
  const s3 = requireSettings(config, [
    'FILES_S3_URL',
    'FILES_S3_BUCKET',
    'FILES_S3_KEY_ID',
    'FILES_S3_SECRET',
  ]);
  // Loading the client takes a while, and most installations have no use for it.
  const { createS3Store } = await import('./s3.js');
  return createS3Store({
    url: s3.FILES_S3_URL,
    bucket: s3.FILES_S3_BUCKET,
    region: s3.FILES_S3_REGION,
    keyId: s3.FILES_S3_KEY_ID,
    secret: s3.FILES_S3_SECRET,
    pathStyle: s3.FILES_S3_PATH_STYLE,
  });
}
