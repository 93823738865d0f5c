import { z } from 'zod';
import { exportLines, exportForm as form, waiting } from '../../actions/export_lines.js';
import { fail } from '../../errors.js';
import { defineEndpoint, replied } from '../../server/endpoint.js';
import { storeLimits as limits } from '../../store/limits.js';
import { exportLine } from '../../wire/export_results.js';

let running = 0;

/** Streams the caller's data. Writes lines no faster than the client reads them (behaviour §14). */
export const exportSelf = defineEndpoint({
  verb: 'GET',
  path: '/api/me/export',
  summary:
    'Exports all data about the caller, one JSON object per line: profile, tokens and bots (without secrets), chats, messages, media, reactions and votes.',
  params: z.object({}),
  contentType: form.contentType,
  line: exportLine,
  handler: async ({ user, store, files, request, onRevoked }) => {
    if (running >= limits.exports_max) fail('too_many_requests', { retry_after: 1 });
    running++;
    let forget = () => {};
    try {
      await store.exports.begin(user.id);
      const stream = request.openStream(form);
      let over = request.method === 'HEAD';
      const end = () => {
        over = true;
        stream.break();
      };
      request.onAbort(end);
      forget = onRevoked(end);
      try {
        let lines = 0;
        let text = '';
        const send = async () => {
          if (!stream.write(text) && !over) throw new Error('a line is longer than what may wait');
          text = '';
          await stream.drained();
        };
        for await (const line of exportLines(store, files, user)) {
          if (over) return replied;
          if (line.kind !== waiting.kind) lines++;
          text += `${JSON.stringify(line)}\n`;
          if (text.length > limits.export_write_length_min || line.kind === waiting.kind) await send();
        }
        text += `${JSON.stringify({ kind: 'end', lines })}\n`;
        await send();
        stream.close();
      } catch (error) {
        // Aborts the connection, so that the client notices that the export is incomplete.
        end();
        throw error;
      }
      return replied;
    } finally {
      running--;
      forget();
    }
  },
});
