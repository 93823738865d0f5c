/**
 * Makes CPU profiles of a front. With `--profile`, the front loads this module. SIGUSR2 starts a profile, and the next
 * SIGUSR2 writes the profile to a numbered file. The parent sets the name of the profile in the environment.
 */
import { writeFileSync } from 'node:fs';
import { type Profiler, Session } from 'node:inspector/promises';

const path = process.env.PETREL_BENCH_PROFILE ?? 'front';
const session = new Session();
session.connect();
let recording = false;
let count = 0;

async function toggle(): Promise<void> {
  recording = !recording;
  if (recording) {
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: 200 });
    await session.post('Profiler.start');
    return;
  }
  const { profile } = (await session.post('Profiler.stop')) as { profile: Profiler.Profile };
  await session.post('Profiler.disable');
  writeFileSync(`${path}-${++count}.cpuprofile`, JSON.stringify(profile));
}

process.on('SIGUSR2', () => void toggle());
