import { withoutFaultMarks } from '../fault.ts'
import { drawCharacter, LINK_LIFE_MS, pictureLink, soundLink } from '../files/stored-files.ts'
import {
  asList,
  asNumber,
  asObject,
  asText,
  checkFields,
  type Fields,
  isGiven,
  names,
  rule,
  wholeNumber,
} from '../request-fields.ts'
import { jsonReply, RefusedCall, type SandboxCall, streamReply } from '../sandbox-operation.ts'
import {
  DASHSCOPE_HEADERS,
  DASHSCOPE_NATIVE_ERRORS,
  DASHSCOPE_REQUEST_ID,
  nativeOperation,
  refuseNative,
  SETTING_RULES,
} from './dashscope-errors.ts'

const PATH = '/api/v1/services/aigc/multimodal-generation/generation'

/** An edited image keeps the proportions of the last given one and has about this size. Here it is a square. */
const EDITED: PictureSize = { width: 1024, height: 1024 }

/**
 * DashScope: `POST /api/v1/services/aigc/multimodal-generation/generation` for images (Qwen-Image text to image, image editing;
 * error texts: error codes page). Speech has the same path. The answer links to an image of the right size, which `PICTURE_FILES`
 * draws.
 */
export const DASHSCOPE_IMAGES = nativeOperation({
  operation: 'images',
  post: PATH,
  when: ({ body }) => !isSpeech(body),
  prompt: (request) => membersOf(request, 'text').join('\n'),
  json(call, context, request) {
    const rules = checkedRules(call, IMAGE_RULES.find(([name]) => asText(request['model']).startsWith(name))?.[1])
    checkMessages(request, rules)
    const parameters = asObject(request['parameters'])
    checkParameters(parameters, rules)
    if (context.blocked) refuseNative('Input data may contain inappropriate content.', 'DataInspectionFailed')
    const isEdit = membersOf(request, 'image').length > 0
    const size = sizeOf(parameters['size']) ?? (isEdit ? undefined : rules.textDefault) ?? EDITED
    const count = asNumber(parameters['n']) ?? 1
    const content = Array.from({ length: count }, (_, index) => {
      const seed = index === 0 ? context.id : `${context.id}.${index}`
      return { image: pictureLink(call, { ...size, seed, format: 'png' }, context.nowMs) }
    })
    return {
      request_id: DASHSCOPE_REQUEST_ID,
      output: { choices: [{ finish_reason: 'stop', message: { role: 'assistant', content } }] },
      usage: context.usage({ image_count: count, ...size }),
    }
  },
})

/** The model decides the kind of a request. An image model does not speak a text next to its messages. */
function isSpeech(body: unknown): boolean {
  const { model, input } = asObject(body)
  const isImageModel = IMAGE_RULES.some(([name]) => asText(model).startsWith(name))
  return typeof asObject(input)['text'] === 'string' && !isImageModel
}

/** Checks the mode of a call and that its model has rules. */
function checkedRules<Rules>({ headers, body }: SandboxCall, rules: Rules | undefined): Rules {
  if (isGiven(headers['x-dashscope-async'])) {
    const message = 'Current user api does not support asynchronous calls.'
    throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(403, message))
  }
  if (asText(asObject(body)['model']) === '')
    refuseNative('Required parameter "model" missing from request.', 'BadRequest.EmptyModel')
  if (rules === undefined) throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(404))
  return rules
}

function checkMessages(request: Fields, { images }: DashScopeImageRules): void {
  const messages = asList(asObject(request['input'])['messages'])
  if (messages.length === 0) refuseNative('No messages found in input')
  if (messages.length > 1) refuseNative('messages length only support 1')
  if (asObject(messages[0])['role'] !== 'user') refuseNative("the role of a message must be 'user'")
  const [texts, pictures] = [membersOf(request, 'text'), membersOf(request, 'image')]
  if (texts.join('') === '' || pictures.length < images.min) refuseNative('lack of image or text')
  if (pictures.length > images.max || texts.length > 1) refuseNative(`content length only support ${images.max + 1}`)
  if (!pictures.every((url) => /^(?:https?:\/\/|oss:\/\/|data:image\/)/.test(url)))
    refuseNative('download image failed')
}

function checkParameters(parameters: Fields, { maxAnswers, takesSize }: DashScopeImageRules): void {
  const takesThisSize = (value: unknown): boolean => {
    const size = sizeOf(value)
    return size !== undefined && takesSize?.(size) === true
  }
  if (maxAnswers === 1 && (parameters['n'] ?? 1) !== 1) refuseNative('num_images_per_prompt must be 1.')
  const rules = [
    rule('n', wholeNumber(1, maxAnswers), `n must be in [1, ${maxAnswers}]: parameters.n`),
    ...SETTING_RULES,
    rule('size', takesThisSize, 'size is not supported: parameters.size'),
    rule('prompt_extend', () => takesSize !== undefined, 'prompt_extend is not supported: parameters.prompt_extend'),
  ]
  checkFields(parameters, rules, (text) => refuseNative(text))
}

function sizeOf(value: unknown): PictureSize | undefined {
  const [, width, height] = /^([1-9]\d{0,4})\*([1-9]\d{0,4})$/.exec(asText(value)) ?? []
  return width === undefined || height === undefined ? undefined : { width: Number(width), height: Number(height) }
}

/** Returns the texts or images of the first message. */
function membersOf(request: Fields, name: 'text' | 'image'): string[] {
  const [message] = asList(asObject(request['input'])['messages'])
  const content = asList(asObject(message)['content']).map((block) => asObject(block)[name])
  return content.filter(isGiven).map(asText)
}

/** Size of an image in pixels. */
interface PictureSize {
  readonly width: number
  readonly height: number
}

/** Limits of an image model. */
interface DashScopeImageRules {
  /** Number of images in a request. */
  readonly images: { readonly min: number; readonly max: number }
  readonly maxAnswers: number
  /** Whether a size is accepted. If omitted, the model has no `size` and no `prompt_extend`. */
  readonly takesSize?: (size: PictureSize) => boolean
  /** Default size of text to image. Models without one only edit. */
  readonly textDefault?: PictureSize
}

const WIDE: PictureSize = { width: 1664, height: 928 }
const SQUARE: PictureSize = { width: 2048, height: 2048 }

const byArea = ({ width, height }: PictureSize): boolean => width * height >= 512 ** 2 && width * height <= 2048 ** 2
const bySide = ({ width, height }: PictureSize): boolean =>
  Math.min(width, height) >= 512 && Math.max(width, height) <= 2048
const FIXED_SIZES = names('1664*928 1472*1104 1328*1328 1104*1472 928*1664')
const byList = ({ width, height }: PictureSize): boolean => FIXED_SIZES.has(`${width}*${height}`)

const NONE = { min: 0, max: 0 }
const ANY = { min: 0, max: 3 }
const SOME = { min: 1, max: 3 }

/** Rules by the longest matching prefix of the model's name, because dated ids follow the same rules. */
const IMAGE_RULES: readonly (readonly [name: string, rules: DashScopeImageRules])[] = [
  ['qwen-image-edit-plus', { images: SOME, maxAnswers: 6, takesSize: bySide }],
  ['qwen-image-edit-max', { images: SOME, maxAnswers: 6, takesSize: bySide }],
  ['qwen-image-edit', { images: SOME, maxAnswers: 1 }],
  ['qwen-image-2.0', { images: ANY, maxAnswers: 6, takesSize: byArea, textDefault: SQUARE }],
  ['qwen-image-max', { images: NONE, maxAnswers: 1, takesSize: byArea, textDefault: WIDE }],
  ['qwen-image', { images: NONE, maxAnswers: 1, takesSize: byList, textDefault: WIDE }],
]

/**
 * DashScope: `POST /api/v1/services/aigc/multimodal-generation/generation` for speech (Qwen-TTS; error texts: error codes page).
 * Images have the same path but messages in place of `input.text`. Each character is a tone of 60 ms and one event. Without
 * `X-DashScope-SSE`, the answer links to a file, which `SOUND_FILES` draws. Fault marks in the text are not spoken.
 */
export const DASHSCOPE_SPEECH = nativeOperation({
  operation: 'speech',
  post: PATH,
  when: ({ body }) => isSpeech(body),
  prompt: ({ input }) => asText(asObject(input)['text']),
  answer(call, context, { model, input }) {
    const rules = checkedRules(call, SPEECH_RULES.get(asText(model)))
    checkSpeech(asObject(input), rules)
    if (context.blocked) refuseNative('Input text data may contain inappropriate content.', 'DataInspectionFailed')
    const text = withoutFaultMarks(asText(asObject(input)['text']))
    const id = `audio_${context.id}`
    const usage = context.usage({ characters: spokenCharacters(text) })
    const expiresAt = Math.floor((context.nowMs + LINK_LIFE_MS) / 1000)
    const file = { data: '', url: soundLink(call, text, context.nowMs), id, expires_at: expiresAt }
    const output = { finish_reason: 'stop', audio: file }
    if (call.headers['x-dashscope-sse'] !== 'enable')
      return jsonReply(200, DASHSCOPE_HEADERS, { request_id: DASHSCOPE_REQUEST_ID, output, usage })
    const events = Array.from(text, (character, index) => {
      const audio = { data: drawCharacter(character).toString('base64'), id, expires_at: 0 }
      return eventOf(index + 1, { output: { finish_reason: 'null', audio } })
    })
    const last = eventOf(events.length + 1, { output, usage })
    return streamReply(DASHSCOPE_HEADERS, [...events, last], events[0] ?? last)
  },
})

function eventOf(id: number, data: object): string {
  const json = JSON.stringify({ ...data, request_id: DASHSCOPE_REQUEST_ID })
  return `id:${id}\nevent:result\n:HTTP_STATUS/200\ndata:${json}\n\n`
}

function checkSpeech({ text, voice, instructions }: Fields, rules: DashScopeSpeechRules): void {
  if (!isGiven(voice)) refuseNative('Field required: input.voice')
  if (!rules.voices.includes(asText(voice))) refuseNative(`The requested voice '${asText(voice)}' is not supported.`)
  const length = spokenCharacters(asText(text))
  if (length === 0 || length > MAX_SPOKEN_CHARACTERS)
    refuseNative(`Range of input length should be [1, ${MAX_SPOKEN_CHARACTERS}]: input.text`)
  if (isGiven(instructions) && !rules.takesInstructions)
    refuseNative('instructions is not supported: input.instructions')
}

/** Maximum characters of a text. An ideograph counts as two, the stricter of two readings of the vendor's page. */
const MAX_SPOKEN_CHARACTERS = 600

/** Limits of a speech model. */
interface DashScopeSpeechRules {
  readonly voices: readonly string[]
  readonly takesInstructions: boolean
}

const SHARED = 'Cherry Serena Ethan Chelsie Momo Vivian Moon Maia Kai Nofish Bella'.split(' ')

/** Rules by model (Model Studio, Qwen-TTS). */
const SPEECH_RULES: ReadonlyMap<string, DashScopeSpeechRules> = new Map([
  ['qwen3-tts-flash', { voices: [...SHARED, 'Jennifer', 'Ryan', 'Katerina', 'Aiden'], takesInstructions: false }],
  ['qwen3-tts-instruct-flash', { voices: SHARED, takesInstructions: true }],
])

/** Returns the number of characters that a text counts as. */
function spokenCharacters(text: string): number {
  return Array.from(text).length + (text.match(/[\p{Script=Han}\p{Script=Hangul}]/gu)?.length ?? 0)
}
