import { Buffer } from 'node:buffer'

/** Samples a second of the sounds that stand-ins make: 16 bits, little-endian, mono. */
export const SOUND_SAMPLE_RATE = 24_000

/** How long one character sounds. */
export const CHARACTER_MS = 60

/** Bytes of the sound of one character. */
export const CHARACTER_BYTES = (SOUND_SAMPLE_RATE / 1000) * CHARACTER_MS * 2

const LOUDNESS = 8_000
const LOWEST_HERTZ = 180
const SEMITONES = 36

/** The sound of one character: a tone of its own, swelling and fading so that nothing clicks; silence for white space. */
export function drawCharacter(character: string): Buffer {
  const sound = Buffer.alloc(CHARACTER_BYTES)
  if (character.trim() === '') return sound
  const hertz = LOWEST_HERTZ * 2 ** (((character.codePointAt(0) ?? 0) % SEMITONES) / 12)
  const samples = CHARACTER_BYTES / 2
  for (let index = 0; index < samples; index++) {
    const swell = Math.sin((Math.PI * index) / samples)
    const wave = Math.sin((2 * Math.PI * hertz * index) / SOUND_SAMPLE_RATE)
    sound.writeInt16LE(Math.round(LOUDNESS * swell * wave), 2 * index)
  }
  return sound
}

/** The sound of a text: its characters one after another, so that texts joined sound like sounds joined. */
export function drawSound(text: string): Buffer {
  return Buffer.concat(Array.from(text, drawCharacter))
}
