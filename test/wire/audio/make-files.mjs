// Creates the real files of the tests again: `node test/wire/audio/make-files.mjs`. Needs sox with LAME, Vorbis and FLAC. Each file
// is a quiet tone with some noise; its name contains its length in tenths of a second.
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, 'files')

/** Name without the length, seconds, options of the output, the sound, and the seconds that sox plays where they differ. */
const SOX_FILES = [
  ['mp3-cbr-64k', 2.4, ['-C', '64', '-r', '44100', '-c', '1'], 'sine 300'],
  ['mp3-cbr-32k-stereo', 5.2, ['-C', '32', '-r', '44100', '-c', '2'], 'sine 300'],
  ['mp3-vbr', 3.1, ['-C', '-9', '-r', '44100', '-c', '1'], 'pinknoise'],
  ['mp3-vbr-silence', 5.3, ['-C', '-6', '-r', '44100', '-c', '1'], 'sine 1 vol 0'],
  ['mp3-22k', 4.5, ['-C', '32', '-r', '22050', '-c', '1'], 'sine 500'],
  ['mp3-16k', 7.7, ['-C', '16', '-r', '16000', '-c', '1'], 'sine 500'],
  // A frame of this rate is 72 ms, and decoders play the one that the encoder adds.
  ['mp3-8k', 8.2, ['-C', '8', '-r', '8000', '-c', '1'], 'sine 500', 8.3],
  ['flac-16k', 1.1, ['-r', '16000', '-c', '1'], 'sine 200'],
  ['flac-44k-stereo', 0.6, ['-r', '44100', '-c', '2', '-b', '16'], 'sine 200'],
  ['flac-48k-24bit', 0.6, ['-r', '48000', '-c', '1', '-b', '24'], 'sine 200'],
  ['flac-silence', 30, ['-r', '16000', '-c', '1'], 'sine 1 vol 0'],
  ['ogg-vorbis-44k', 3.9, ['-r', '44100', '-c', '1', '-C', '0'], 'sine 300'],
  ['ogg-vorbis-16k', 6.6, ['-r', '16000', '-c', '1', '-C', '-1'], 'sine 300'],
  ['ogg-vorbis-stereo', 2.5, ['-r', '32000', '-c', '2', '-C', '0'], 'sine 300'],
  ['wav-pcm8', 2.1, ['-r', '8000', '-c', '1', '-b', '8'], 'sine 200'],
  ['wav-pcm16', 0.5, ['-r', '16000', '-c', '1', '-b', '16'], 'sine 200'],
  ['wav-float', 0.3, ['-r', '8000', '-c', '1', '-e', 'floating-point', '-b', '32'], 'sine 200'],
  ['wav-ulaw', 1.7, ['-r', '8000', '-c', '1', '-e', 'u-law'], 'sine 200'],
  ['wav-gsm', 4.4, ['-r', '8000', '-c', '1', '-e', 'gsm-full-rate'], 'sine 200'],
  ['wav-adpcm', 2.2, ['-r', '8000', '-c', '1', '-e', 'ms-adpcm'], 'sine 200'],
]

if (process.argv[1] === import.meta.filename) {
  const path = (name, seconds, extension) => {
    const file = join(folder, `${name}-${Math.round(seconds * 10)}.${extension}`)
    rmSync(file, { force: true })
    return file
  }
  for (const [name, seconds, options, sound, played = seconds] of SOX_FILES) {
    const [kind, ...rest] = sound.split(' ')
    const file = path(name, played, name.slice(0, name.indexOf('-')))
    execFileSync('sox', [
      '-R',
      '-n',
      ...options,
      file,
      'synth',
      String(seconds),
      kind,
      ...rest,
      ...(rest.includes('vol') ? [] : ['vol', '0.2']),
    ])
  }
}
