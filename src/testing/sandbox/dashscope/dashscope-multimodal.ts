import { withoutFaultMarks } from '../fault.ts'
import { drawCharacter, LINK_LIFE_MS, pictureLink, soundLink } from '../files/stored-files.ts'
import {
  asList,
  asNumber,
  asObject,
  asText,
  checkFields,
  type FieldRule,
  type Fields,
  isGiven,
  rule,
  wholeNumber,
} from '../request-fields.ts'
import {
  type AnswerContext,
  checkBearer,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'
import {
  DASHSCOPE_HEADERS,
  DASHSCOPE_NATIVE_ERRORS,
  DASHSCOPE_REQUEST_ID,
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
export const DASHSCOPE_IMAGES: SandboxOperation = {
  vendor: 'dashscope',
  operation: 'images',
  errors: DASHSCOPE_NATIVE_ERRORS,
  matches: ({ method, path, body }) => method === 'POST' && path === PATH && !speaks(body),
  promptText: (body) => textsOf(contentOf(body)).join('\n'),
  answer(call, context) {
    checkBearer(call, DASHSCOPE_NATIVE_ERRORS)
    if (isGiven(call.headers['x-dashscope-async'])) {
      const message = 'Current user api does not support asynchronous calls.'
      throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(403, message))
    }
    const rules = checkedRules(call.body)
    checkMessages(call.body, rules)
    const parameters = asObject(asObject(call.body)['parameters'])
    checkParameters(parameters, rules)
    if (context.blocked) refuseNative('Input data may contain inappropriate content.', 'DataInspectionFailed')
    const isEdit = imagesOf(contentOf(call.body)).length > 0
    const size = sizeOf(parameters['size']) ?? (isEdit ? undefined : rules.textDefault) ?? EDITED
    return answerWith(call, context, size, asNumber(parameters['n']) ?? 1)
  },
}

/** The model decides the kind of a request. An image model does not speak a text next to its messages. */
function speaks(body: unknown): boolean {
  const model = asText(asObject(body)['model'])
  return typeof inputOf(body)['text'] === 'string' && imageRulesOf(model) === undefined
}

function answerWith(call: SandboxCall, context: AnswerContext, size: PictureSize, count: number) {
  const content = Array.from({ length: count }, (_, index) => {
    const seed = index === 0 ? context.id : `${context.id}.${index}`
    return { image: pictureLink(call, { ...size, seed, format: 'png' }, context.nowMs) }
  })
  return jsonReply(200, DASHSCOPE_HEADERS, {
    request_id: DASHSCOPE_REQUEST_ID,
    output: { choices: [{ finish_reason: 'stop', message: { role: 'assistant', content } }] },
    usage: context.usage({ image_count: count, ...size }),
  })
}

function checkedRules(body: unknown): DashScopeImageRules {
  const model = asText(asObject(body)['model'])
  if (model === '') refuseNative('Required parameter "model" missing from request.', 'BadRequest.EmptyModel')
  const rules = imageRulesOf(model)
  if (rules === undefined) throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(404))
  return rules
}

function checkMessages(body: unknown, { images }: DashScopeImageRules): void {
  const messages = asList(asObject(asObject(body)['input'])['messages'])
  if (messages.length === 0) refuseNative('No messages found in input')
  if (messages.length > 1) refuseNative('messages length only support 1')
  if (asObject(messages[0])['role'] !== 'user') refuseNative("the role of a message must be 'user'")
  const content = contentOf(body)
  const pictures = imagesOf(content)
  if (textsOf(content).join('') === '' || pictures.length < images.min) refuseNative('lack of image or text')
  if (pictures.length > images.max || textsOf(content).length > 1) {
    refuseNative(`content length only support ${images.max + 1}`)
  }
  if (!pictures.every((url) => /^(?:https?:\/\/|oss:\/\/|data:image\/)/.test(url)))
    refuseNative('download image failed')
}

function checkParameters(parameters: Fields, { maxAnswers, takesSize }: DashScopeImageRules): void {
  const takesThisSize = (value: unknown): boolean => {
    const size = sizeOf(value)
    return size !== undefined && takesSize?.(size) === true
  }
  if (maxAnswers === 1 && (parameters['n'] ?? 1) !== 1) refuseNative('num_images_per_prompt must be 1.')
  const rules: readonly FieldRule[] = [
    rule('n', wholeNumber(1, maxAnswers), `n must be in [1, ${maxAnswers}]: parameters.n`),
    ...SETTING_RULES,
    rule('size', takesThisSize, 'size is not supported: parameters.size'),
  ]
  checkFields(parameters, rules, (text) => refuseNative(text))
  if (takesSize === undefined && isGiven(parameters['prompt_extend'])) {
    refuseNative('prompt_extend is not supported: parameters.prompt_extend')
  }
}

function sizeOf(value: unknown): PictureSize | undefined {
  const [, width, height] = /^([1-9]\d{0,4})\*([1-9]\d{0,4})$/.exec(asText(value)) ?? []
  return width === undefined || height === undefined ? undefined : { width: Number(width), height: Number(height) }
}

function contentOf(body: unknown): readonly Readonly<Record<string, unknown>>[] {
  const [message] = asList(asObject(asObject(body)['input'])['messages'])
  return asList(asObject(message)['content']).map(asObject)
}

function textsOf(content: readonly Readonly<Record<string, unknown>>[]): string[] {
  return content.filter((block) => isGiven(block['text'])).map((block) => asText(block['text']))
}

function imagesOf(content: readonly Readonly<Record<string, unknown>>[]): string[] {
  return content.filter((block) => isGiven(block['image'])).map((block) => asText(block['image']))
}

/** Size of an image in pixels. */
export interface PictureSize {
  readonly width: number
  readonly height: number
}

/** Limits of an image model. */
export interface DashScopeImageRules {
  /** Number of images in a request. */
  readonly images: { readonly min: number; readonly max: number }
  readonly maxAnswers: number
  /** Whether a size is accepted. Absent if the model has no `size` and no `prompt_extend`. */
  readonly takesSize: ((size: PictureSize) => boolean) | undefined
  /** Default size of text to image. Absent for models that only edit. */
  readonly textDefault: PictureSize | undefined
}

const FIXED_SIZES = ['1664*928', '1472*1104', '1328*1328', '1104*1472', '928*1664']
const WIDE: PictureSize = { width: 1664, height: 928 }
const SQUARE: PictureSize = { width: 2048, height: 2048 }

const byArea = ({ width, height }: PictureSize): boolean => width * height >= 512 ** 2 && width * height <= 2048 ** 2
const bySide = ({ width, height }: PictureSize): boolean =>
  Math.min(width, height) >= 512 && Math.max(width, height) <= 2048
const byList = ({ width, height }: PictureSize): boolean => FIXED_SIZES.includes(`${width}*${height}`)

const NONE = { min: 0, max: 0 }
const ANY = { min: 0, max: 3 }
const SOME = { min: 1, max: 3 }

/** Rules by the longest matching prefix of the model's name, because dated ids follow the same rules. */
const IMAGE_RULES: readonly (readonly [name: string, rules: DashScopeImageRules])[] = [
  ['qwen-image-edit-plus', { images: SOME, maxAnswers: 6, takesSize: bySide, textDefault: undefined }],
  ['qwen-image-edit-max', { images: SOME, maxAnswers: 6, takesSize: bySide, textDefault: undefined }],
  ['qwen-image-edit', { images: SOME, maxAnswers: 1, takesSize: undefined, textDefault: undefined }],
  ['qwen-image-2.0', { images: ANY, maxAnswers: 6, takesSize: byArea, textDefault: SQUARE }],
  ['qwen-image-max', { images: NONE, maxAnswers: 1, takesSize: byArea, textDefault: WIDE }],
  ['qwen-image', { images: NONE, maxAnswers: 1, takesSize: byList, textDefault: WIDE }],
]

/** Returns the rules of a model (DashScope, Qwen-Image text to image and image editing), or `undefined` for an unknown model. */
export function imageRulesOf(model: string): DashScopeImageRules | undefined {
  return IMAGE_RULES.find(([name]) => model.startsWith(name))?.[1]
}

/**
 * DashScope: `POST /api/v1/services/aigc/multimodal-generation/generation` for speech (Qwen-TTS; error texts: error codes page).
 * Images have the same path but messages in place of `input.text`. Each character is a tone of 60 ms and one event. Without
 * `X-DashScope-SSE`, the answer links to a file, which `SOUND_FILES` draws. Fault marks in the text are not spoken.
 */
export const DASHSCOPE_SPEECH: SandboxOperation = {
  vendor: 'dashscope',
  operation: 'speech',
  errors: DASHSCOPE_NATIVE_ERRORS,
  matches: ({ method, path, body }) => method === 'POST' && path === PATH && speaks(body),
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

const SHARED = ['Cherry', 'Serena', 'Ethan', 'Chelsie', 'Momo', 'Vivian', 'Moon', 'Maia', 'Kai', 'Nofish', 'Bella']

/** Maximum characters of a text. An ideograph counts as two, the stricter of two readings of the vendor's page. */
export const MAX_SPOKEN_CHARACTERS = 600

/** Limits of a speech model. */
export interface DashScopeSpeechRules {
  readonly voices: readonly string[]
  readonly takesInstructions: boolean
}

const SPEECH_RULES: ReadonlyMap<string, DashScopeSpeechRules> = new Map([
  [
    'qwen3-tts-flash',
    {
      voices: [...SHARED, 'Jennifer', 'Ryan', 'Katerina', 'Aiden'],
      takesInstructions: false,
    },
  ],
  ['qwen3-tts-instruct-flash', { voices: SHARED, takesInstructions: true }],
])

/** Returns the rules of a model (Model Studio, Qwen-TTS), or `undefined` for an unknown model. */
export function speechRulesOf(model: string): DashScopeSpeechRules | undefined {
  return SPEECH_RULES.get(model)
}

/** Returns the number of characters that a text counts as. */
export function spokenCharacters(text: string): number {
  let count = 0
  for (const character of text) count += /[\p{Script=Han}\p{Script=Hangul}]/u.test(character) ? 2 : 1
  return count
}
