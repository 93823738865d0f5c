/** Records a voice message, in the place of the text field. The person then sends or deletes the recording. */
import { useEffect, useRef, useState } from 'react';
import { Recording, type VoiceFile } from '../model/recording.js';
import { say } from '../notes.js';
import { useSignal } from '../signal.js';
import { t } from '../words.js';
import { IconButton } from './ui.js';

interface RecorderProps {
  /** Sends the recording. Returns false if it cannot be sent now. */
  send: (voice: VoiceFile) => boolean;
  close: () => void;
  /** Tells the other people that the person is recording. Called repeatedly while the recording runs. */
  tell: () => void;
}

const timeText = (seconds: number): string =>
  `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;

/** Starts a recording, which is deleted when the component is removed. */
function useRecording(close: () => void): Recording {
  const [recording] = useState(() => new Recording());
  useSignal(recording);
  useEffect(() => {
    void recording.start();
    return () => recording.drop();
  }, [recording]);
  const { failure } = recording;
  // biome-ignore lint/correctness/useExhaustiveDependencies: reports a failure only once
  useEffect(() => {
    if (failure === '') return;
    say(failure);
    close();
  }, [failure]);
  return recording;
}

/** Shows the volume of the last moments as bars. */
function Levels({ levels }: { levels: readonly number[] }) {
  return (
    <span className="record-levels" aria-hidden="true">
      {levels.map((level, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a bar has no identity
        <span key={i} style={{ height: `${Math.round(10 + 90 * level)}%` }} />
      ))}
    </span>
  );
}

export default function Recorder({ send, close, tell }: RecorderProps) {
  const recording = useRecording(close);
  const row = useRef<HTMLDivElement>(null);
  const { state, seconds, levels } = recording;
  const isReady = state === 'running' || state === 'complete';
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs only once a second
  useEffect(() => {
    if (state === 'running') tell();
  }, [state, Math.floor(seconds)]);
  // Focuses the send button as soon as it can be pressed. Before that, focuses the delete button.
  useEffect(() => {
    row.current?.querySelector<HTMLElement>(isReady ? '.send' : 'button')?.focus();
  }, [isReady]);
  const finish = async () => {
    const voice = await recording.finish();
    if (voice === null || send(voice)) close();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be a flex container in all browsers
    <div
      className="composer-row recorder"
      ref={row}
      role="group"
      aria-label={t('media_voice')}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        event.preventDefault();
        close();
      }}
    >
      <IconButton icon="trash" label={t('record_cancel')} onClick={close} />
      <span className={state === 'running' ? 'record-dot running' : 'record-dot'} aria-hidden="true" />
      <span className="record-time" role="timer">
        {timeText(seconds)}
      </span>
      <Levels levels={levels} />
      <span role="status" className={state === 'complete' ? 'record-full' : 'sr-only'}>
        {state === 'running' && t('recording')}
        {state === 'complete' && t('record_full')}
      </span>
      <IconButton
        icon="send"
        label={t('send')}
        className="send"
        disabled={!isReady}
        onClick={() => void finish()}
      />
    </div>
  );
}
