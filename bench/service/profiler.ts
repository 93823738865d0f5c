/**
 * Takes CPU profiles of a front, which loads this module with `--profile`. SIGUSR2 starts a profile, and the next
 * SIGUSR2 writes it to a numbered file. The parent process sets the file name in the environment.
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
