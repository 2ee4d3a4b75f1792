import { asList, asNumber, asObject, asText, isGiven } from '../model/loose-json.ts'
import { credentialOf, type SandboxCall } from '../sandbox-call.ts'
import { geminiImageModel } from './gemini-image-models.ts'
import { isOwnInteraction } from './gemini-interaction-ids.ts'
import { refuseInteraction } from './gemini-interactions-errors.ts'

type Json = Readonly<Record<string, unknown>>

const OLD_REVISION = '2026-05-07'
const OLD_LAYOUT =
  'The legacy Interactions schema is no longer supported. Please use the steps schema (Api-Revision 2026-05-20).'

/** The checks of one request. Source: Google's reference of the Interactions API, and its guide to image generation. */
export function checkInteraction(call: SandboxCall): void {
  const request = asObject(call.body)
  if (call.headers['api-revision'] === OLD_REVISION) refuseInteraction(OLD_LAYOUT)
  for (const name of ['outputs', 'response_mime_type']) if (isGiven(request[name])) refuseInteraction(OLD_LAYOUT)
  if (isGiven(request['agent'])) refuseInteraction("Only one of 'model' and 'agent' may be set.")
  const model = asText(request['model'])
  if (!model.startsWith('gemini-')) refuseInteraction(`Model '${model}' is not found or does not support interactions.`)
  checkInput(request['input'], model)
  if (isGiven(request['system_instruction']) && typeof request['system_instruction'] !== 'string') {
    refuseInteraction("Invalid value at 'system_instruction': a string is expected.")
  }
  asFormats(request['response_format']).forEach((format) => {
    checkFormat(format, model)
  })
  checkConfig(asObject(request['generation_config']), model)
  checkHistory(request, call)
}

/** The formats asked for; the field takes one or a list. */
export function asFormats(value: unknown): readonly Json[] {
  if (!isGiven(value)) return []
  return (Array.isArray(value) ? value : [value]).map(asObject)
}

/** The blocks of the input; a text is one block. */
export function inputBlocks(input: unknown): readonly Json[] {
  return typeof input === 'string' ? [{ type: 'text', text: input }] : asList(input).map(asObject)
}

function checkInput(input: unknown, model: string): void {
  const blocks = inputBlocks(input)
  if (blocks.length === 0 || input === '') refuseInteraction("The 'input' field is required.")
  const { maxReferences } = geminiImageModel(model)
  let pictures = 0
  blocks.forEach((block, index) => {
    const place = `input[${index}]`
    if (block['type'] === 'text') {
      if (typeof block['text'] !== 'string') refuseInteraction(`Invalid value at '${place}.text'.`)
    } else if (block['type'] === 'image') {
      pictures += 1
      checkPicture(block, place)
    } else if (block['type'] === 'user_input') checkInput(block['content'], model)
    else refuseInteraction(`Invalid value at '${place}.type': ${JSON.stringify(block['type'])}`)
  })
  if (pictures > maxReferences) refuseInteraction(`At most ${maxReferences} images are supported by this model.`)
}

function checkPicture(block: Json, place: string): void {
  const data = block['data']
  if (!isGiven(data) && !isGiven(block['uri'])) refuseInteraction(`One of 'data' and 'uri' is required at '${place}'.`)
  if (isGiven(data) && !/^[A-Za-z0-9+/_-]+={0,2}$/.test(asText(data).slice(0, 4096))) {
    refuseInteraction(`Invalid value at '${place}.data': Base64 decoding failed.`)
  }
  if (isGiven(data) && !asText(block['mime_type']).startsWith('image/')) {
    refuseInteraction(`Invalid value at '${place}.mime_type': ${JSON.stringify(block['mime_type'])}`)
  }
}

function checkFormat(format: Json, model: string): void {
  if (format['type'] === 'text') return
  const facts = geminiImageModel(model)
  const wrong = (name: string) =>
    refuseInteraction(`Invalid value at 'response_format.${name}': ${JSON.stringify(format[name])}`)
  if (format['type'] !== 'image') wrong('type')
  if (isGiven(format['mime_type']) && format['mime_type'] !== 'image/jpeg' && format['mime_type'] !== 'image/png') {
    wrong('mime_type')
  }
  if (isGiven(format['image_size']) && !facts.sizes.has(asText(format['image_size']))) wrong('image_size')
  if (isGiven(format['aspect_ratio']) && !facts.ratios.includes(asText(format['aspect_ratio']))) wrong('aspect_ratio')
}

function checkConfig(config: Json, model: string): void {
  const level = config['thinking_level']
  if (isGiven(level) && !geminiImageModel(model).thinkingLevels.includes(asText(level))) {
    refuseInteraction(`Invalid value at 'generation_config.thinking_level': ${JSON.stringify(level)}`)
  }
  const temperature = asNumber(config['temperature']) ?? 1
  if (temperature < 0 || temperature > 2) {
    refuseInteraction("Invalid value at 'generation_config.temperature': must be in the range [0.0, 2.0].")
  }
}

function checkHistory(request: Json, call: SandboxCall): void {
  const isStored = request['store'] !== false
  if (request['background'] === true) refuseInteraction('Background execution is not supported by this model.')
  if (!isGiven(request['previous_interaction_id'])) return
  if (!isStored) refuseInteraction("'previous_interaction_id' cannot be used when 'store' is false.")
  if (!isOwnInteraction(asText(request['previous_interaction_id']), credentialOf(call))) {
    refuseInteraction('previous_interaction_id not found', 404)
  }
}
