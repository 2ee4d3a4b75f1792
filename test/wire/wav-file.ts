/** A WAV file as a strict reader sees it. */
export interface WavFile {
  readonly channels: number
  readonly sampleRate: number
  readonly bits: number
  /** Length of the sound in bytes, as the header claims it. */
  readonly claimedBytes: number
  readonly samples: Buffer
}

/** Reads a file whose header has 44 bytes. Throws if it is not PCM audio. */
export function wavFile(bytes: Uint8Array): WavFile {
  const file = Buffer.from(bytes)
  const marks = [file.toString('latin1', 0, 4), file.toString('latin1', 8, 16), file.toString('latin1', 36, 40)]
  if (marks.join() !== 'RIFF,WAVEfmt ,data') throw new Error(`not a WAV file: ${marks.join()}`)
  if (file.readUInt32LE(16) !== 16 || file.readUInt16LE(20) !== 1) throw new Error('not PCM')
  const [channels, sampleRate, bits] = [file.readUInt16LE(22), file.readUInt32LE(24), file.readUInt16LE(34)]
  const frame = (channels * bits) / 8
  if (file.readUInt32LE(28) !== sampleRate * frame || file.readUInt16LE(32) !== frame) throw new Error('rates disagree')
  return { channels, sampleRate, bits, claimedBytes: file.readUInt32LE(40), samples: file.subarray(44) }
}
