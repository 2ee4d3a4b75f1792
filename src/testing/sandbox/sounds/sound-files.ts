import { Buffer } from 'node:buffer'
import { isLinkOver, signedLink } from '../files/signed-link.ts'
import { STORAGE_ERRORS } from '../files/storage-errors.ts'
import type { SandboxCall } from '../sandbox-call.ts'
import { fileReply, type SandboxOperation } from '../sandbox-operation.ts'
import { drawSound, SOUND_SAMPLE_RATE } from './draw-sound.ts'

// The text itself stands in the path, so that nothing needs to be stored.
const PATH = /^\/sandbox-files\/speech-([\w-]{1,6000})\.wav$/

/** Sounds that the stand-ins' answers link to: `GET /sandbox-files/speech-<text in base64url>.wav`. No credential is needed. */
export const SOUND_FILES: SandboxOperation = {
  vendor: 'files',
  operation: 'sound',
  errors: STORAGE_ERRORS,
  needsJson: false,
  matches: ({ method, path }) => method === 'GET' && PATH.test(path),
  promptText: () => '',
  answer(call, context) {
    if (isLinkOver(call, context.nowMs)) return STORAGE_ERRORS.status(403, 'Request has expired.')
    const text = Buffer.from(PATH.exec(call.path)?.[1] ?? '', 'base64url').toString('utf8')
    return fileReply('audio/wav', wavFile(drawSound(text)))
  },
}

/** A link to the sound of a text at the origin that the call came to, by plain http as the vendor writes it. */
export function soundLink(call: Pick<SandboxCall, 'headers'>, text: string, nowMs: number): string {
  const path = `/sandbox-files/speech-${Buffer.from(text).toString('base64url')}.wav`
  return signedLink(call, path, { madeMs: nowMs, processOrigin: 'http://files.example' })
}

/** A whole WAV file, its length in its header. */
function wavFile(samples: Buffer): Buffer {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(36 + samples.length, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(SOUND_SAMPLE_RATE, 24)
  header.writeUInt32LE(SOUND_SAMPLE_RATE * 2, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(samples.length, 40)
  return Buffer.concat([header, samples])
}
