/**
 * Saves keys and peppers in an encrypted file. Keep the file apart from the backups, which cannot be used without these
 * secrets.
 */

import { createCipheriv, createDecipheriv, scryptSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { systemRandom } from '../random.js';
import { BackupError } from './manifest.js';

/** The names of the secrets that every node needs and that cannot be recreated. */
export const keptNames = [
  'TOKEN_PEPPER',
  'TOKEN_KEYS',
  'ADMIN_TOKEN',
  'PARTITIONS',
  'VAPID_PRIVATE_KEY',
  'WEBHOOK_SIGNING_KEYS',
] as const;

const magic = Buffer.from('petrel-keys-1\n');
const saltBytes = 16;
const ivBytes = 12;
const tagBytes = 16;
/** The parameters of scrypt. A single guess of the passphrase costs about 100 ms and 64 MiB. */
const cost = { N: 2 ** 16, r: 8, p: 1, maxmem: 128 * 1024 * 1024 };

const keyOf = (passphrase: string, salt: Buffer) => scryptSync(passphrase, salt, 32, cost);

/**
 * Writes a new, encrypted file with the secrets that every node needs. Takes the secrets from `environment`. Returns
 * the names of the secrets. Throws a BackupError when a secret is missing or the file exists.
 */
export function sealKeys(
  file: string,
  passphrase: string,
  environment: Readonly<Record<string, string | undefined>>,
  random = systemRandom,
): string[] {
  const missing = ['TOKEN_PEPPER', 'TOKEN_KEYS'].filter((name) => !environment[name]);
  if (missing.length > 0) throw new BackupError(`${missing.join(' and ')} must be set`);
  const kept = keptNames.filter((name) => environment[name]);
  const lines = kept.map((name) => `${name}=${environment[name]}\n`);
  const [salt, iv] = [random.bytes(saltBytes), random.bytes(ivBytes)];
  const cipher = createCipheriv('aes-256-gcm', keyOf(passphrase, salt), iv);
  const sealed = Buffer.concat([cipher.update(lines.join(''), 'utf8'), cipher.final()]);
  try {
    writeFileSync(file, Buffer.concat([magic, salt, iv, cipher.getAuthTag(), sealed]), {
      mode: 0o600,
      flag: 'wx',
    });
  } catch (error) {
    throw new BackupError(`${file} cannot be written: ${(error as Error).message}`);
  }
  return kept;
}

/**
 * Decrypts the file. Returns lines for an environment file. Throws a BackupError for a wrong passphrase or a damaged
 * file.
 */
export function openKeys(file: string, passphrase: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw new BackupError(`${file} cannot be read: ${(error as Error).message}`);
  }
  if (!bytes.subarray(0, magic.length).equals(magic)) throw new BackupError(`${file} is not a key file`);
  const parts = bytes.subarray(magic.length);
  const salt = parts.subarray(0, saltBytes);
  const iv = parts.subarray(saltBytes, saltBytes + ivBytes);
  const tag = parts.subarray(saltBytes + ivBytes, saltBytes + ivBytes + tagBytes);
  try {
    const decipher = createDecipheriv('aes-256-gcm', keyOf(passphrase, salt), iv).setAuthTag(tag);
    const text = decipher.update(parts.subarray(saltBytes + ivBytes + tagBytes));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    throw new BackupError(`${file} cannot be decrypted: the passphrase is wrong or the file is damaged`);
  }
}
