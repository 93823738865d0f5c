import { expect } from 'vitest';
import type { Case } from './cases.js';
import { keys, type Seed } from './world.js';

const preview = keys.linkPreview(1, 9);
const name = 'link_preview:9';
const former: Seed = (client) => client.set(preview, 'former', 'PX', 1_000);

export const linkPreviewCases: Case[] = [
  {
    ...{ script: 'messages/read_link_preview', what: 'returns what is in the slot' },
    ...{ seeds: [former], keys: { preview }, args: {}, answer: ['ok', 'former'] },
  },
  {
    ...{ script: 'messages/read_link_preview', what: 'returns null for an empty slot' },
    ...{ keys: { preview }, args: {}, answer: ['ok', null] },
  },
  {
    ...{ script: 'messages/keep_link_preview', what: 'replaces what is in the slot, for some time' },
    ...{ seeds: [former], keys: { preview }, args: { kept: 'newer', ttl_ms: '60000' } },
    ...{ answer: ['ok'], changes: [name] },
    async after(client) {
      expect(await client.get(preview)).toBe('newer');
      const left = await client.pttl(preview);
      expect(left).toBeGreaterThan(1_000);
      expect(left).toBeLessThanOrEqual(60_000);
    },
  },
];
