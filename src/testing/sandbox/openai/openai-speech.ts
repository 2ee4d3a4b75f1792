import { drawSound, wavFile } from '../files/stored-files.ts'
import { asObject, asText, isGiven } from '../request-fields.ts'
import { checkBearer, fileReply, RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, openaiInvalid } from './openai-errors.ts'

const MODELS: readonly string[] = ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts']
const VOICES = 'alloy ash ballad coral echo fable onyx nova sage shimmer verse marin cedar'.split(' ')
const MAX_CHARACTERS = 4096

/** OpenAI: `POST /v1/audio/speech` as `pcm` or `wav`; the sound is a tone for each character. Other formats are refused. */
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
    return refuse('The stand-in makes pcm and wav.', 'response_format')
  },
}

function refuse(message: string, param: string): never {
  throw new RefusedCall(openaiInvalid(message, param))
}
