import { Buffer } from 'node:buffer'
import { drawSound, wavFile } from '../files/stored-files.ts'
import { asObject, asText, isGiven } from '../request-fields.ts'
import { checkBearer, fileReply, RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, openaiInvalid } from './openai-errors.ts'

const MODELS: readonly string[] = ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts']
const VOICES = 'alloy ash ballad coral echo fable onyx nova sage shimmer verse marin cedar'.split(' ')
const MAX_CHARACTERS = 4096

/** Media types that OpenAI answers with, and the first bytes of these files. */
const FILES: Readonly<Record<string, { readonly type: string; readonly mark: Buffer }>> = {
  opus: { type: 'audio/opus', mark: Buffer.from('OggS', 'latin1') },
  aac: { type: 'audio/aac', mark: Buffer.from([0xff, 0xf1, 0x50, 0x80]) },
  flac: { type: 'audio/flac', mark: Buffer.from('fLaC', 'latin1') },
}
const FORMATS = ['pcm', 'wav', ...Object.keys(FILES)]

/**
 * OpenAI: `POST /v1/audio/speech`. The sound is a tone for each character. `opus`, `aac` and `flac` are
 * samples after the first bytes of such a file, which no player reads.
 */
export const OPENAI_SPEECH: SandboxOperation = {
  vendor: 'openai',
  operation: 'speech',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/audio/speech',
  promptText: (body) => asText(asObject(body)['input']),
  answer(call) {
    checkBearer(call, OPENAI_ERRORS)
    const { model, input, voice, response_format: format, instructions } = asObject(call.body)
    if (!MODELS.includes(asText(model))) throw new RefusedCall(OPENAI_ERRORS.status(404))
    const text = asText(input)
    if (text === '') refuse("Missing required parameter: 'input'.", 'input')
    if (text.length > MAX_CHARACTERS) refuse(`String should have at most ${MAX_CHARACTERS} characters`, 'input')
    if (!VOICES.includes(asText(voice))) refuse(`Input should be one of ${VOICES.join(', ')}`, 'voice')
    if (isGiven(instructions) && asText(model).startsWith('tts-1'))
      refuse("'instructions' is not supported by this model.", 'instructions')
    if (format === 'pcm') return fileReply('audio/pcm', drawSound(text), OPENAI_HEADERS)
    if (format === 'wav') return fileReply('audio/wav', wavFile(drawSound(text)), OPENAI_HEADERS)
    const file = FILES[asText(format)]
    if (file === undefined) return refuse(`Input should be one of ${FORMATS.join(', ')}`, 'response_format')
    return fileReply(file.type, Buffer.concat([file.mark, drawSound(text)]), OPENAI_HEADERS)
  },
}

function refuse(message: string, param: string): never {
  throw new RefusedCall(openaiInvalid(message, param))
}
