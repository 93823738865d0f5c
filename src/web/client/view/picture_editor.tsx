/** Lets a person choose, crop, upload and remove a picture: the avatar of a person, or a picture of a bot. */
import { useEffect, useRef, useState } from 'react';
import Cropper, { type Area } from 'react-easy-crop';
import { call } from '../api.js';
import { attempt, reasonOf } from '../failures.js';
import { say } from '../notes.js';
import { t } from '../words.js';
import '../words/later.js';
import { Confirm, Dialog } from './ui.js';

const forms = {
  avatar: { width: 512, height: 512, shape: 'round' },
  start_picture: { width: 640, height: 360, shape: 'rect' },
} as const;
export type PictureKind = keyof typeof forms;

async function cut(url: string, area: Area, width: number, height: number): Promise<Blob> {
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const drawing = canvas.getContext('2d');
  if (!drawing) throw new Error(t('media_unavailable'));
  drawing.imageSmoothingQuality = 'high';
  drawing.drawImage(image, area.x, area.y, area.width, area.height, 0, 0, width, height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error(t('media_unavailable')))), 'image/png'),
  );
}

function Crop({
  kind,
  file,
  close,
  save,
}: {
  kind: PictureKind;
  file: File;
  close: () => void;
  save: (picture: Blob) => void;
}) {
  const { width, height, shape } = forms[kind];
  const [url, setUrl] = useState('');
  const [crop, setCrop] = useState({ x: 0, y: 0 });
  const [zoom, setZoom] = useState(1);
  const [area, setArea] = useState<Area | null>(null);
  useEffect(() => {
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return (
    <Dialog title={t(kind)} close={close} wide>
      <div className="cropper">
        {url && (
          <Cropper
            image={url}
            crop={crop}
            zoom={zoom}
            aspect={width / height}
            cropShape={shape}
            showGrid={false}
            disableAutomaticStylesInjection
            onCropChange={setCrop}
            onZoomChange={setZoom}
            onCropComplete={(_, pixels) => setArea(pixels)}
          />
        )}
      </div>
      <label className="field">
        {t('zoom')}
        <input
          type="range"
          min={1}
          max={4}
          step={0.01}
          value={zoom}
          onChange={(event) => setZoom(Number(event.target.value))}
        />
      </label>
      <div className="row end dialog-foot">
        <button type="button" className="button" onClick={close}>
          {t('cancel')}
        </button>
        <button
          type="button"
          className="button primary"
          disabled={!area}
          onClick={() => {
            if (area)
              cut(url, area, width, height).then(save, (error) => {
                say(reasonOf(error));
                close();
              });
          }}
        >
          {t('save')}
        </button>
      </div>
    </Dialog>
  );
}

interface PictureEditorProps {
  kind: PictureKind;
  /** The API path for setting and removing the picture. */
  path: string;
  isSet: boolean;
  /** Called after the picture was set or removed. */
  changed: () => unknown;
}

/** Shows the buttons that set and remove a picture, and their dialogs. */
export function PictureEditor({ kind, path, isSet, changed }: PictureEditorProps) {
  const [file, setFile] = useState<File | null>(null);
  const [removing, setRemoving] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const run = async (work: Promise<unknown>) => {
    await attempt(async () => {
      await work;
      say(t('saved'));
      await changed();
    });
    setFile(null);
  };
  return (
    <>
      <div className="row wrap">
        <button type="button" className="button primary" onClick={() => input.current?.click()}>
          {t('choose_picture')}
        </button>
        {isSet && (
          <button type="button" className="button danger" onClick={() => setRemoving(true)}>
            {t('remove')}
          </button>
        )}
        <input
          ref={input}
          type="file"
          accept="image/png,image/jpeg,image/webp"
          hidden
          aria-label={t(kind)}
          onChange={(event) => {
            setFile(event.target.files?.[0] ?? null);
            event.target.value = '';
          }}
        />
      </div>
      {file && (
        <Crop
          kind={kind}
          file={file}
          close={() => setFile(null)}
          save={(blob) => void run(call('PUT', path, blob))}
        />
      )}
      {removing && (
        <Confirm
          title={t('remove')}
          text={t('remove_picture_hint')}
          action={t('remove')}
          danger
          close={() => setRemoving(false)}
          act={() => void run(call('DELETE', path))}
        />
      )}
    </>
  );
}
