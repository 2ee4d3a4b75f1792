import * as z from 'zod'
import { isSet } from '../../../core/json.ts'
import { onDemand } from '../../../core/on-demand.ts'
import { listOf } from '../../schema.ts'

const HTTP_URL = /^https?:\/\/./i
const IMAGE_TYPE = /^image\/[\w.+-]+$/i

const block = onDemand(() =>
  z
    .looseObject({
      type: z.enum(['text', 'image']),
      text: z.string().min(1).optional(),
      mime_type: z.string().optional(),
      data: z.string().optional(),
      uri: z.string().optional(),
    })
    .check((context) => {
      const { type, text, mime_type, data, uri } = context.value
      if (type === 'text') {
        if (text === undefined) issue(context, ['text'], 'is required in a text block')
        return
      }
      if (data === undefined && uri === undefined) issue(context, ['data'], 'is required in an image block')
      else if (data !== undefined && uri !== undefined) issue(context, ['uri'], 'cannot be combined with data')
      const dataFault = data === undefined ? undefined : base64Fault(data)
      if (dataFault !== undefined) issue(context, ['data'], dataFault)
      if (uri !== undefined && !HTTP_URL.test(uri)) issue(context, ['uri'], 'must be an http or https URL')
      if (mime_type === undefined) issue(context, ['mime_type'], 'is required in an image block')
      else if (!IMAGE_TYPE.test(mime_type)) issue(context, ['mime_type'], 'must be an image MIME type')
    }),
)

const responseFormat = onDemand(() =>
  inSnakeCase(
    {
      type: z.literal('image'),
      mime_type: z.string().optional(),
      image_size: z.string().optional(),
      aspect_ratio: z.string().optional(),
    },
    ['delivery'],
  ).check((context) => {
    if (context.value.image_size === '512') issue(context, ['image_size'], 'must be written 512px')
  }),
)

const generationConfig = onDemand(() =>
  inSnakeCase(
    {
      thinking_level: z.string().optional(),
      temperature: z.number().min(0).max(2).optional(),
    },
    ['image_config', 'candidate_count'],
  ).check((context) => {
    const { image_config, candidate_count } = context.value
    // A field of the vendor's other API: each candidate is another image, and the hold covers one.
    if (isSet(candidate_count) && candidate_count !== 1) issue(context, ['candidate_count'], 'must be 1')
    // The vendor's older place of the size, which would take effect without being billed.
    if (isSet(image_config)) issue(context, ['image_config'], 'is not supported; use response_format')
  }),
)

/** Fields that refer to state of the operator or of other callers at the vendor. Stored state has no owner here. */
const REFUSED_FIELDS = ['agent', 'cached_content', 'continuation_token', 'webhook_config'] as const

/**
 * Rules of the interactions-style image request. Unknown fields are passed on. Some fields that the vendor knows are
 * rejected: names in camel case, which would bypass the checks here; `background`, because its answer could not be
 * fetched; `agent`, which would answer instead of the billed model; contents and tokens stored at the vendor, possibly
 * by another caller; and `webhook_config`, which would make the vendor call unchecked addresses.
 */
export const interactionSchema = onDemand(() =>
  inSnakeCase(
    {
      model: z.string().min(1),
      input: z.union([z.string().min(1), listOf(block()).min(1)]),
      system_instruction: z.string().optional(),
      response_format: responseFormat().optional(),
      generation_config: generationConfig().optional(),
      previous_interaction_id: z.string().min(1).optional(),
      tools: listOf(z.looseObject({ type: z.string().optional() })).optional(),
      store: z.boolean().optional(),
      stream: z.boolean().optional(),
      background: z.boolean().optional(),
      service_tier: z.unknown().optional(),
    },
    REFUSED_FIELDS,
  ).check((context) => {
    const { background, previous_interaction_id, store } = context.value
    if (background === true) issue(context, ['background'], 'is not supported')
    for (const name of REFUSED_FIELDS) if (isSet(context.value[name])) issue(context, [name], 'is not supported')
    // Only stored interactions can be continued (Gemini API, "Interactions").
    if (store === false && previous_interaction_id !== undefined)
      issue(context, ['previous_interaction_id'], 'cannot be combined with store false')
  }),
)

interface Checked {
  readonly value: Record<string, unknown>
  readonly issues: unknown[]
}

function issue(context: Checked, path: PropertyKey[], message: string): void {
  context.issues.push({ code: 'custom', path, message, input: context.value })
}

/** Rejects `imageSize` for `image_size`: the vendor may accept both spellings of a member, and only one is checked here. */
function inSnakeCase<Shape extends z.ZodRawShape>(shape: Shape, furtherNames: readonly string[]) {
  const fields = [...Object.keys(shape), ...furtherNames]
  return z.looseObject(shape).check((context) => {
    for (const name of Object.keys(context.value)) {
      if (fields.includes(name)) continue
      const snakeName = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      if (fields.includes(snakeName)) issue(context, [name], `must be written ${snakeName}`)
    }
  })
}

const DATA_URL_PREFIX = /^\s*data:/i
// One class without repetition: the search is linear and needs no stack, however long the text is.
const FOREIGN_CHARACTER = /[^A-Za-z0-9+/=_-]/

/** Returns the fault of a base64 image as the end of a sentence, if any. Linear in its length. */
function base64Fault(data: string): string | undefined {
  if (data === '') return 'must not be empty'
  if (DATA_URL_PREFIX.test(data.slice(0, 64))) return 'must be base64 without a data: URI prefix'
  return hasValidEnd(data) && !FOREIGN_CHARACTER.test(data) ? undefined : 'must be base64'
}

/** Padding is optional; if present, it fills the last group of four. */
function hasValidEnd(data: string): boolean {
  const padding = data.indexOf('=')
  if (padding === -1) return data.length % 4 !== 1
  return data.length % 4 === 0 && padding >= data.length - 2 && data.endsWith('=')
}
