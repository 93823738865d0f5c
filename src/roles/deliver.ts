/** The role `deliver`: sweeps up what a process that died left undone. */
import type { Backends } from './backends.js';
import type { Role } from './role.js';

export function startDeliver({ store }: Backends): Role {
  store.sweep.start();
  return { stop: () => store.sweep.stop() };
}
