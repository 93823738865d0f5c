/** Records a voice message with the microphone and measures the volume. */
import { Signal } from '../signal.js';
import { t } from '../words.js';

/** The MIME types in order of preference. All browsers play the first two. Safari can only record the last one. */
const types = ['audio/ogg;codecs=opus', 'audio/webm;codecs=opus', 'audio/mp4;codecs=mp4a.40.2'];
const bits_per_s = 32_000;
/** The maximum length of a recording in seconds. A recording of this length has about 3.6 MB. */
export const recording_s_max = 15 * 60;
/** How often the volume is measured, and how many of the latest values are stored. */
const level_ms = 100;
const levels_max = 40;

export interface VoiceFile {
  readonly file: File;
  /** The length of the recording in seconds. Browsers do not write the length into the file. */
  readonly seconds: number;
}

/** Returns the text that says why recording is impossible. */
function reasonOf(error: unknown): string {
  const name = error instanceof DOMException ? error.name : '';
  if (name === 'NotAllowedError' || name === 'SecurityError') return t('fail_microphone');
  return t(name === 'NotFoundError' ? 'fail_no_microphone' : 'fail_recording');
}

/**
 * A recording of the microphone. Its states are:
 * - `asking`: the browser asks for permission.
 * - `running`
 * - `complete`: the recording has ended. It also ends at the maximum length, and when the microphone is unplugged.
 * - `failed`: the recording could not start, and `failure` says why.
 * - `dropped`: the person has deleted the recording.
 *
 * In every state after `running`, the microphone is released.
 */
export class Recording extends Signal {
  state: 'asking' | 'running' | 'complete' | 'failed' | 'dropped' = 'asking';
  failure = '';
  seconds = 0;
  /** The latest values of the volume, from 0 to 1. */
  levels: readonly number[] = [];
  readonly #chunks: Blob[] = [];
  #stream: MediaStream | undefined;
  #recorder: MediaRecorder | undefined;
  #sound: AudioContext | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  async start(): Promise<void> {
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      this.#stream = stream;
      // The person has deleted the recording while the browser was asking for permission.
      if (this.state !== 'asking') return this.#release();
      const mimeType = types.find((type) => MediaRecorder.isTypeSupported(type)) as string;
      const recorder = new MediaRecorder(stream, { mimeType, audioBitsPerSecond: bits_per_s });
      recorder.ondataavailable = ({ data }) => this.#chunks.push(data);
      recorder.onstop = () => this.#end('complete');
      recorder.onerror = () => this.#fail(t('fail_recording'));
      this.#recorder = recorder;
      this.#measure(stream);
      recorder.start(1_000);
      this.state = 'running';
      this.changed();
    } catch (error) {
      this.#fail(reasonOf(error));
    }
  }

  /** Measures the volume and the length until the recording ends. */
  #measure(stream: MediaStream): void {
    const sound = new AudioContext();
    const analyser = sound.createAnalyser();
    analyser.fftSize = 1_024;
    sound.createMediaStreamSource(stream).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    const began = performance.now();
    this.#sound = sound;
    this.#timer = setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
      this.levels = [...this.levels, Math.min(1, Math.sqrt(power) * 4)].slice(-levels_max);
      this.seconds = (performance.now() - began) / 1_000;
      this.changed();
      if (this.seconds >= recording_s_max) this.#recorder?.stop();
    }, level_ms);
  }

  #release(): void {
    clearInterval(this.#timer);
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    void this.#sound?.close();
    this.#sound = undefined;
  }

  #end(state: 'complete' | 'failed' | 'dropped'): void {
    this.#release();
    if (this.state === 'asking' || this.state === 'running') this.state = state;
    this.changed();
  }

  #fail(reason: string): void {
    this.failure = reason;
    this.#end('failed');
  }

  /** Ends the recording and returns its file, or null if nothing was recorded. */
  async finish(): Promise<VoiceFile | null> {
    if (this.state === 'running') {
      const ended = new Promise<void>((resolve) => {
        const stop = this.subscribe(() => {
          if (this.state === 'running') return;
          stop();
          resolve();
        });
      });
      this.#recorder?.stop();
      await ended;
    }
    if (this.state !== 'complete') return null;
    const type = this.#recorder?.mimeType ?? '';
    const file = new File(this.#chunks, t('media_voice'), { type });
    return file.size === 0 ? null : { file, seconds: Math.max(1, Math.round(this.seconds)) };
  }

  /** Deletes the recording and releases the microphone. */
  drop(): void {
    const recorder = this.#recorder;
    this.#end('dropped');
    if (recorder && recorder.state !== 'inactive') recorder.stop();
  }
}
