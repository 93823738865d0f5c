/** Runs SPIN on the models in this folder: explores all their states, or simulates one run. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isThere } from '../../infra/build/programs.mjs';

export const models = ['fill_tickets', 'token_lease', 'outbox', 'incarnations', 'announcements'] as const;
export type Model = (typeof models)[number];

const pathOf = (model: Model) => fileURLToPath(new URL(`${model}.pml`, import.meta.url));

/** Returns whether the needed programs are installed. If not, prints which program is missing. */
export function canRun(...programs: readonly string[]): boolean {
  const missing = programs.filter((program) => !isThere(program));
  if (missing.length > 0)
    console.warn(`The models are not checked, because ${missing.join(', ')} is missing`);
  return missing.length === 0;
}

/** Runs a program in a folder. Returns its output, even if the program fails. */
function run(folder: string, program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(program, args, { cwd: folder, maxBuffer: 64 * 1024 ** 2 }, (_, stdout, stderr) => {
      resolve(stdout + stderr);
    });
  });
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-model-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Returns the names of a model's mutations. These are the names in `#ifdef` and `#ifndef` lines that the model does not
 * define as bounds.
 */
export function mutationsOf(model: Model): string[] {
  const text = readFileSync(pathOf(model), 'utf8');
  const names = (directive: string) =>
    [...text.matchAll(new RegExp(`^#${directive} (\\w+)`, 'gm'))].map(([, name]) => name as string);
  const defined = new Set(names('define'));
  return [...new Set([...names('ifdef'), ...names('ifndef')])].filter((name) => !defined.has(name)).sort();
}

/** Explores all states of a model in at most 500 MB. Returns the report of SPIN. */
export const explore = (model: Model, definitions: readonly string[]): Promise<string> =>
  inFolder(async (folder) => {
    const flags = definitions.map((name) => `-D${name}`);
    const prepared = await run(folder, 'spin', ['-a', ...flags, pathOf(model)]);
    const compiled = await run(folder, 'gcc', [
      '-O1',
      '-w',
      '-DSAFETY',
      '-DCOLLAPSE',
      '-DMEMLIM=500',
      '-o',
      'pan',
      'pan.c',
    ]);
    return prepared + compiled + (await run(folder, './pan', ['-E', '-m20000', '-w22']));
  });

/** A line that a model prints for a step: the name of the step and its numbers. */
export interface Step {
  readonly name: string;
  readonly of: Readonly<Record<string, number>>;
}

/** Simulates one random run of a model. Returns the steps that the model prints. */
export const simulate = (model: Model, seed: number, definitions: readonly string[]): Promise<Step[]> =>
  inFolder(async (folder) => {
    const flags = definitions.map((name) => `-D${name}`);
    const out = await run(folder, 'spin', ['-T', `-n${seed}`, '-u3000', ...flags, pathOf(model)]);
    // SPIN prints `timeout` when no process can take a step.
    return [...out.replace(/^ *timeout$/m, '').matchAll(/^ *([a-z]+(?: [a-z]+)*)((?: [a-z]+=\d+)*)$/gm)].map(
      ([, name, numbers]) => ({
        name: name as string,
        of: Object.fromEntries(
          [...(numbers as string).matchAll(/([a-z]+)=(\d+)/g)].map(([, key, value]) => [key, Number(value)]),
        ),
      }),
    );
  });
