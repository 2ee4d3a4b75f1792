import { withoutFaultMarks } from '../faults/fault-marks.ts'
import { LINK_LIFE_MS } from '../files/signed-link.ts'
import { asObject, asText, isGiven } from '../model/loose-json.ts'
import { checkBearer } from '../openai-dialect/bearer-check.ts'
import type { SandboxCall } from '../sandbox-call.ts'
import {
  type AnswerContext,
  jsonReply,
  RefusedCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'
import { drawCharacter } from '../sounds/draw-sound.ts'
import { soundLink } from '../sounds/sound-files.ts'
import { DASHSCOPE_HEADERS } from './dashscope-errors.ts'
import { DASHSCOPE_NATIVE_ERRORS, DASHSCOPE_REQUEST_ID, refuseNative } from './dashscope-native-errors.ts'
import { MAX_SPOKEN_CHARACTERS, speechRulesOf, spokenCharacters } from './dashscope-speech-rules.ts'

const PATH = '/api/v1/services/aigc/multimodal-generation/generation'

/**
 * DashScope: `POST /api/v1/services/aigc/multimodal-generation/generation` for speech (Qwen-TTS; texts of refusals: error
 * codes page). Pictures have the same path but messages in place of `input.text`. Each character sounds for 60 ms as a tone
 * of its own and is one event; without `X-DashScope-SSE` the answer links to a file, which `SOUND_FILES` draws. Fault marks
 * in the text are not spoken.
 */
export const DASHSCOPE_SPEECH: SandboxOperation = {
  vendor: 'dashscope',
  operation: 'speech',
  errors: DASHSCOPE_NATIVE_ERRORS,
  matches: ({ method, path, body }) => method === 'POST' && path === PATH && typeof inputOf(body)['text'] === 'string',
  promptText: (body) => asText(inputOf(body)['text']),
  answer(call, context) {
    checkBearer(call, DASHSCOPE_NATIVE_ERRORS)
    if (isGiven(call.headers['x-dashscope-async'])) {
      const message = 'Current user api does not support asynchronous calls.'
      throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(403, message))
    }
    checkSpeech(call.body)
    if (context.blocked) refuseNative('Input text data may contain inappropriate content.', 'DataInspectionFailed')
    const text = withoutFaultMarks(asText(inputOf(call.body)['text']))
    return call.headers['x-dashscope-sse'] === 'enable' ? streamed(call, context, text) : linked(call, context, text)
  },
}

function checkSpeech(body: unknown): void {
  const model = asText(asObject(body)['model'])
  if (model === '') refuseNative('Required parameter "model" missing from request.', 'BadRequest.EmptyModel')
  const rules = speechRulesOf(model)
  if (rules === undefined) throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(404))
  const { text, voice, instructions } = inputOf(body)
  if (!isGiven(voice)) refuseNative('Field required: input.voice')
  if (!rules.voices.includes(asText(voice))) refuseNative(`The requested voice '${asText(voice)}' is not supported.`)
  const length = spokenCharacters(asText(text))
  if (length === 0 || length > MAX_SPOKEN_CHARACTERS) {
    refuseNative(`Range of input length should be [1, ${MAX_SPOKEN_CHARACTERS}]: input.text`)
  }
  if (isGiven(instructions) && !rules.takesInstructions)
    refuseNative('instructions is not supported: input.instructions')
}

function streamed(call: SandboxCall, context: AnswerContext, text: string): SandboxReply {
  const characters = spokenCharacters(text)
  const sounds = Array.from(text, (character) => drawCharacter(character).toString('base64'))
  const events = sounds.map((data, index) =>
    eventOf(index + 1, { finish_reason: 'null', audio: { data, id: `audio_${context.id}`, expires_at: 0 } }),
  )
  const usage = context.usage({ characters })
  const last = eventOf(sounds.length + 1, { finish_reason: 'stop', audio: fileOf(call, context, text) }, usage)
  return streamReply(DASHSCOPE_HEADERS, [...events, last], events[0] ?? last)
}

function linked(call: SandboxCall, context: AnswerContext, text: string): SandboxReply {
  return jsonReply(200, DASHSCOPE_HEADERS, {
    request_id: DASHSCOPE_REQUEST_ID,
    output: { finish_reason: 'stop', audio: fileOf(call, context, text) },
    usage: context.usage({ characters: spokenCharacters(text) }),
  })
}

function fileOf(call: SandboxCall, context: AnswerContext, text: string): object {
  return {
    data: '',
    url: soundLink(call, text, context.nowMs),
    id: `audio_${context.id}`,
    expires_at: Math.floor((context.nowMs + LINK_LIFE_MS) / 1000),
  }
}

function eventOf(id: number, output: object, usage?: object): string {
  const data = { output, ...(usage === undefined ? {} : { usage }), request_id: DASHSCOPE_REQUEST_ID }
  return `id:${id}\nevent:result\n:HTTP_STATUS/200\ndata:${JSON.stringify(data)}\n\n`
}

function inputOf(body: unknown): Readonly<Record<string, unknown>> {
  return asObject(asObject(body)['input'])
}
