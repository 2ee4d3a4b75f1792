import { isJsonObject } from '../../../core/json.ts'
import type {
  InteractionBlock,
  InteractionRequest,
} from '../../../endpoints/images/interactions/interaction-request.ts'
import { unsupportedParameter } from '../../shared/parameter-errors.ts'
import type { VendorCall, WireRequest } from '../../vendor.ts'
import type { GeminiPart, GenerateContentRequest, GenerationConfig } from '../api-request.ts'
import { apiRequestHead } from '../api-request.ts'
import { modelAbilities } from '../model-abilities.ts'
import { reasoningToWire } from '../reasoning.ts'
import { refuseVendorFiles } from './interaction-to-wire.ts'

/** Fields with an equivalent, or without an effect beyond the default. */
const MAPPED_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'system_instruction',
  'response_format',
  'generation_config',
  'stream',
])
const MAPPED_FORMAT_FIELDS: ReadonlySet<string> = new Set(['type', 'image_size', 'aspect_ratio'])

/** Settings with the same meaning under another name (Gemini API, "GenerationConfig"). */
const SAME_SETTINGS: ReadonlyMap<string, string> = new Map([
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['top_k', 'topK'],
  ['seed', 'seed'],
  ['max_output_tokens', 'maxOutputTokens'],
  ['stop_sequences', 'stopSequences'],
])

/**
 * Writes an interaction as `generateContent`, or `streamGenerateContent` for streams (Gemini API, "Image generation"). Fields
 * without an equivalent are dropped and reported.
 * @param basePath Path up to and including the version: `/v1beta`.
 * @throws GatewayError `unsupported_parameter` naming `previous_interaction_id`, because this API keeps no history, or an
 *   image that is stored at the vendor.
 */
export function generatedImageToWire(call: VendorCall<InteractionRequest>, basePath: string): WireRequest {
  const { request, model, stream } = call
  if (request.previous_interaction_id !== undefined) {
    const message = 'previous_interaction_id: interactions cannot be continued here. Send the images again.'
    throw unsupportedParameter('previous_interaction_id', message)
  }
  refuseVendorFiles(request)
  const dropped = droppedFields(request)
  const { system_instruction } = request
  const body: GenerateContentRequest = {
    ...(system_instruction === undefined ? {} : { systemInstruction: { parts: [{ text: system_instruction }] } }),
    contents: [{ role: 'user', parts: partsOf(request.input) }],
    generationConfig: generationConfigOf(call, (field) => dropped.push(field)),
  }
  const method = stream ? 'streamGenerateContent' : 'generateContent'
  return {
    ...apiRequestHead({ basePath, model: model.upstream, method, apiKey: call.apiKey }),
    body: JSON.stringify(body),
    dropped,
  }
}

function partsOf(input: InteractionRequest['input']): GeminiPart[] {
  return typeof input === 'string' ? [{ text: input }] : input.map(partOf)
}

function partOf(block: InteractionBlock): GeminiPart {
  if (block.type === 'text') return { text: block.text }
  const { mime_type, data, uri } = block
  if (uri !== undefined)
    return { fileData: { ...(mime_type === undefined ? {} : { mimeType: mime_type }), fileUri: uri } }
  return { inlineData: { mimeType: mime_type ?? '', data: data ?? '' } }
}

function generationConfigOf(
  { request, model }: VendorCall<InteractionRequest>,
  report: (field: string) => void,
): GenerationConfig {
  const { response_format: format, generation_config: settings } = request
  const config: GenerationConfig = {
    // Without a format, interactions return text with the image.
    responseModalities: format === undefined ? ['TEXT', 'IMAGE'] : ['IMAGE'],
  }
  const imageConfig = {
    ...(format?.aspect_ratio === undefined ? {} : { aspectRatio: format.aspect_ratio }),
    ...(format?.image_size === undefined ? {} : { imageSize: format.image_size.replace(/^512px$/, '512') }),
  }
  if (Object.keys(imageConfig).length > 0) config.imageConfig = imageConfig
  for (const [name, value] of Object.entries(settings ?? {})) {
    const setting = SAME_SETTINGS.get(name)
    if (setting !== undefined) Object.assign(config, { [setting]: value })
    else if (name !== 'thinking_level') report(`generation_config.${name}`)
  }
  const thinkingConfig = thinkingConfigOf(settings?.thinking_level, model.upstream, report)
  return thinkingConfig === undefined ? config : { ...config, thinkingConfig }
}

/** Thoughts are not requested, because they would include draft images. */
function thinkingConfigOf(
  level: string | undefined,
  upstream: string,
  report: (field: string) => void,
): GenerationConfig['thinkingConfig'] {
  if (level === undefined) return undefined
  const requested = level === 'minimal' || level === 'low' || level === 'medium' || level === 'high' ? level : undefined
  const plan = requested === undefined ? undefined : reasoningToWire(requested, modelAbilities(upstream).thinking)
  if (plan === undefined || plan.changed) report('generation_config.thinking_level')
  if (plan?.config === undefined) return undefined
  const { includeThoughts: _shown, ...config } = plan.config
  return config
}

function droppedFields(request: InteractionRequest): string[] {
  const fields = Object.entries(request)
    .filter(([name, value]) => !MAPPED_FIELDS.has(name) && isAsked(name, value))
    .map(([name]) => name)
  const format: unknown = request.response_format
  const formatFields = isJsonObject(format) ? Object.keys(format) : []
  return [
    ...fields,
    ...formatFields.filter((name) => !MAPPED_FORMAT_FIELDS.has(name)).map((name) => `response_format.${name}`),
  ]
}

/** This API never stores answers, so `store: false` is always met. */
function isAsked(name: string, value: unknown): boolean {
  return value !== undefined && value !== null && !((name === 'store' || name === 'background') && value === false)
}
