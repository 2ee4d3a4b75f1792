import type { AudioFormat } from '../../wire/audio/audio-header.ts'

/** Media types of recordings, for vendors that require them. */
export const AUDIO_TYPES: Readonly<Record<AudioFormat, string>> = {
  wav: 'audio/wav',
  flac: 'audio/flac',
  mp4: 'audio/mp4',
  ogg: 'audio/ogg',
  mp3: 'audio/mpeg',
  webm: 'audio/webm',
  mpeg: 'audio/mpeg',
}
