import { pictureLink } from '../files/picture-files.ts'
import { asList, asNumber, asObject, asText, isGiven } from '../model/loose-json.ts'
import { checkBearer } from '../openai-dialect/bearer-check.ts'
import type { SandboxCall } from '../sandbox-call.ts'
import { type AnswerContext, jsonReply, RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'
import { DASHSCOPE_HEADERS } from './dashscope-errors.ts'
import { type DashScopeImageRules, imageRulesOf, type PictureSize } from './dashscope-image-rules.ts'
import { DASHSCOPE_NATIVE_ERRORS, DASHSCOPE_REQUEST_ID, refuseNative } from './dashscope-native-errors.ts'

const PATH = '/api/v1/services/aigc/multimodal-generation/generation'
const LARGEST_SEED = 2 ** 31 - 1

/** An edited picture keeps the proportions of the last one given and has about so many pixels; here it is a square. */
const EDITED: PictureSize = { width: 1024, height: 1024 }

/**
 * DashScope: `POST /api/v1/services/aigc/multimodal-generation/generation` for pictures (Qwen-Image text to image, image
 * editing; texts of refusals: error codes page). Speech has the same path but `input.text` in place of messages. The answer
 * links to a picture of the right size, which `PICTURE_FILES` draws.
 */
export const DASHSCOPE_IMAGES: SandboxOperation = {
  vendor: 'dashscope',
  operation: 'images',
  errors: DASHSCOPE_NATIVE_ERRORS,
  matches: ({ method, path, body }) =>
    method === 'POST' && path === PATH && typeof asObject(asObject(body)['input'])['text'] !== 'string',
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

function checkParameters(parameters: Readonly<Record<string, unknown>>, rules: DashScopeImageRules): void {
  const count = parameters['n'] ?? 1
  if (rules.maxAnswers === 1 && count !== 1) refuseNative('num_images_per_prompt must be 1.')
  if (!isWhole(count, 1, rules.maxAnswers)) refuseNative(`n must be in [1, ${rules.maxAnswers}]: parameters.n`)
  if (isGiven(parameters['seed']) && !isWhole(parameters['seed'], 0, LARGEST_SEED)) {
    refuseNative(`seed must be in [0, ${LARGEST_SEED}]: parameters.seed`)
  }
  for (const name of ['watermark', 'prompt_extend']) {
    const value = parameters[name]
    if (isGiven(value) && typeof value !== 'boolean')
      refuseNative(`Input should be a valid boolean: parameters.${name}`)
  }
  if (isGiven(parameters['size'])) {
    const size = sizeOf(parameters['size'])
    if (size === undefined || rules.takesSize?.(size) !== true) refuseNative('size is not supported: parameters.size')
  }
  if (rules.takesSize === undefined && isGiven(parameters['prompt_extend'])) {
    refuseNative('prompt_extend is not supported: parameters.prompt_extend')
  }
}

function isWhole(value: unknown, least: number, most: number): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
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
