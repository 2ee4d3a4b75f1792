import { Buffer } from 'node:buffer'
import * as z from 'zod'
import { isJsonObject } from '../../core/json.ts'
import { onDemand } from '../../core/on-demand.ts'
import type { Tier } from '../../stores/principal.ts'
import { hasAtMost } from '../character-count.ts'
import { type CallerUrl, defineEndpoint, type Endpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { passThroughIfOffered } from '../operation.ts'
import { checkRequest, itemOf, jsonSchemaOf, listOf } from '../schema.ts'
import { kindsByName, promptTexts } from '../texts.ts'
import {
  anyImageErrors,
  type ImagesOffer,
  interactionErrors,
  multimodalErrors,
  refuseOtherShape,
} from './image-operation.ts'
import {
  checkInteractionAbilities,
  estimateInteraction,
  type InteractionRequest,
  imageSize,
} from './interactions/interaction-request.ts'
import { interactionSchema } from './interactions/interaction-schema.ts'
import {
  asInvalidParameter,
  checkAbilities,
  invalidParameter,
  type MultimodalImageRequest,
  pictureSize,
  referenceImages,
} from './multimodal/multimodal-image-request.ts'
import {
  checkFreeSize,
  checkPictureOptions,
  type OpenAIImageRequest,
  pictureBillingFields,
  pictureEstimate,
} from './openai/openai-image-request.ts'
import { pictureSchema } from './openai/openai-image-schema.ts'

/** Longest `negative_prompt`, in characters (code points), as the vendor counts. */
const MAX_NEGATIVE_PROMPT = 500

const LARGEST_SEED = 2 ** 31 - 1

const httpsUrl = onDemand(() =>
  z
    .string()
    .refine(
      (text) => /^https:\/\//i.test(text) && URL.canParse(text),
      'must be an https URL, which the vendor downloads',
    ),
)

const block = onDemand(() =>
  z
    .looseObject({ text: z.string().min(1).optional(), image: httpsUrl().optional() })
    .refine(
      ({ text, image }) => (text === undefined) !== (image === undefined),
      'must hold either text or image, not both',
    ),
)

/** Maximum number of blocks of a message. Current models accept one text and a few images. */
const MAX_BLOCKS = 64

const message = onDemand(() =>
  z.looseObject({
    role: z.literal('user'),
    content: listOf(block(), MAX_BLOCKS).refine(
      (blocks) => blocks.some(({ text }) => text !== undefined),
      'must hold at least one text block',
    ),
  }),
)

const negativePrompt = onDemand(() =>
  z
    .string()
    .refine((text) => hasAtMost(text, MAX_NEGATIVE_PROMPT), `must have at most ${MAX_NEGATIVE_PROMPT} characters`),
)

/**
 * Rules of the multimodal image request (API specification, "Multimodal image request") that hold for every model. Unknown fields
 * are passed on. So are several texts: the vendor rejects them with its own text.
 */
export const multimodalImageSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    input: z.looseObject({ messages: listOf(message()).length(1, 'must hold exactly one message') }),
    parameters: z
      .looseObject({
        size: z
          .string()
          .regex(/^[1-9]\d{0,4}\*[1-9]\d{0,4}$/, 'must be width and height joined by *, such as 1024*1024')
          .optional(),
        n: z.literal(1, 'must be exactly 1').optional(),
        seed: z.int().min(0).max(LARGEST_SEED).optional(),
        watermark: z.boolean().optional(),
        negative_prompt: negativePrompt().optional(),
        prompt_extend: z.boolean().optional(),
      })
      .optional(),
  }),
)

const IMAGES = { id: 'images', path: '/v1/images/generations', kind: 'image', isPaidJob: true } as const

/** Text to image in OpenAI's shape, for `gp-image-2` (API specification, "Endpoints", note 1). */
export const openaiImageEndpoint = defineEndpoint<OpenAIImageRequest, ImagesOffer>({
  ...IMAGES,
  errors: openaiErrors,
  parse(body, { image }) {
    refuseOtherShape(body, 'generations')
    const request = checkRequest<OpenAIImageRequest>(pictureSchema(), body)
    checkFreeSize(request.size, image)
    checkPictureOptions(request, image)
    return request
  },
  requestSchema: () => jsonSchemaOf(pictureSchema(), 'input'),
  isStream: (request) => request.stream === true,
  textBytes: (request) => Buffer.byteLength(request.prompt),
  estimate: (request, textTokens, model) => pictureEstimate(request, { textTokens, pictures: 0 }, model),
  priceFields: pictureBillingFields,
  priceFieldNames: ['size', 'quality'],
  texts: promptTexts({ kinds: { prompt: 'text' }, last: ['prompt'] }),
  createOperation: ({ images }, call) => passThroughIfOffered(images?.generations, call),
})

/**
 * Removes null members that the schema declares optional, including those in nested objects and list items. Returns the
 * same value if there are none.
 */
function withoutNulls(schema: z.core.$ZodType, value: unknown): unknown {
  const { def } = (schema as z.core.$ZodTypes)._zod
  if (def.type === 'optional') return withoutNulls(def.innerType, value)
  if (def.type === 'union') {
    const list = def.options.find((option) => itemOf(option) !== undefined)
    return list === undefined ? value : withoutNulls(list, value)
  }
  const item = itemOf(schema)
  if (item !== undefined && Array.isArray(value)) {
    const items = value.map((each) => withoutNulls(item, each))
    return items.some((each, index) => each !== value[index]) ? items : value
  }
  if (def.type !== 'object' || !isJsonObject(value)) return value
  const { shape } = def
  const members = Object.entries(value)
  const kept = members
    .filter(([name, member]) => member !== null || memberOf(shape, name)?._zod.def.type !== 'optional')
    .map(([name, member]): [string, unknown] => {
      const inner = memberOf(shape, name)
      return [name, inner === undefined ? member : withoutNulls(inner, member)]
    })
  const isChanged = kept.length < members.length || kept.some(([name, member]) => member !== value[name])
  return isChanged ? Object.fromEntries(kept) : value
}

function memberOf(shape: Readonly<Record<string, z.core.$ZodType>>, name: string): z.core.$ZodType | undefined {
  return Object.hasOwn(shape, name) ? shape[name] : undefined
}

/** The multimodal shape of `POST /v1/images/generations` (API specification, "Multimodal image request"). */
export const multimodalImageEndpoint = defineEndpoint<MultimodalImageRequest, ImagesOffer>({
  ...IMAGES,
  errors: multimodalErrors,
  parse(body, model) {
    const request = asInvalidParameter(() => {
      refuseOtherShape(body, 'multimodal')
      return checkRequest<MultimodalImageRequest>(multimodalImageSchema(), withoutNulls(multimodalImageSchema(), body))
    })
    // A caller that requests a stream could not read the image that it pays for.
    if ((body as { readonly stream?: unknown }).stream === true)
      throw invalidParameter('stream', 'this model does not stream')
    if (model.image !== undefined) checkAbilities(request, model.image)
    return request
  },
  requestSchema: () => jsonSchemaOf(multimodalImageSchema(), 'input'),
  isStream: () => false,
  textBytes: (request) => textOf(request).reduce((sum, text) => sum + Buffer.byteLength(text), 0),
  // The vendor counts only images, and a request generates exactly one.
  estimate: () => ({ images: 1 }),
  priceFields(request, model) {
    const size = pictureSize(request, model)
    return size === undefined ? {} : { size }
  },
  priceFieldNames: ['size'],
  callerUrls: (request) =>
    referenceImages(request).map(({ url, position }) => ({
      url,
      param: `input.messages[0].content[${position}].image`,
    })),
  texts: promptTexts({ kindOf: kindsByName({ text: ['text', 'negative_prompt'] }), last: ['input', 'parameters'] }),
  createOperation: ({ images }, call) => passThroughIfOffered(images?.multimodal, call),
})

function textOf({ input, parameters }: MultimodalImageRequest): readonly string[] {
  return [...input.messages[0].content.map(({ text }) => text ?? ''), parameters?.negative_prompt ?? '']
}

const DAY_MS = 24 * 60 * 60_000

/** How long a stored interaction can be continued (API specification, "States and transitions"). */
export const INTERACTION_RETENTION_MS: Readonly<Record<Tier, number>> = { paid: 55 * DAY_MS, free: DAY_MS }

/** Images in the interactions shape (API specification, "Interactions-style image request"). */
export const interactionImageEndpoint = defineEndpoint<InteractionRequest, ImagesOffer>({
  ...IMAGES,
  errors: interactionErrors,
  parse(body, model) {
    refuseOtherShape(body, 'interactions')
    const request = checkRequest<InteractionRequest>(interactionSchema(), withoutNulls(interactionSchema(), body))
    checkInteractionAbilities(request, model)
    return request
  },
  requestSchema: () => jsonSchemaOf(interactionSchema(), 'input'),
  isStream: (request) => request.stream === true,
  // The model reads the stored history again. Images of the request are in the estimate.
  media: ({ previous_interaction_id: previous }) => (previous === undefined ? [] : [{ kind: 'conversation' }]),
  textBytes,
  estimate: estimateInteraction,
  priceFields(request, model) {
    const aspectRatio = request.response_format?.aspect_ratio
    return {
      image_size: imageSize(request, model),
      ...(aspectRatio === undefined ? {} : { aspect_ratio: aspectRatio }),
    }
  },
  priceFieldNames: ['image_size', 'aspect_ratio'],
  callerUrls,
  continuation: {
    of: (request) => ({ previousId: request.previous_interaction_id, isStored: request.store !== false }),
    param: 'previous_interaction_id',
    idPrefix: 'v1',
    retentionMs: INTERACTION_RETENTION_MS,
    store: ({ interactions }) => interactions,
  },
  texts: promptTexts({
    kinds: { input: 'text', system_instruction: 'text' },
    kindOf: kindsByName({ text: ['text'] }),
    last: ['system_instruction', 'input'],
    roleOf: (member) => (member === 'system_instruction' ? 'system' : 'user'),
  }),
  createOperation: ({ images }, call) => passThroughIfOffered(images?.interactions, call),
})

/** Returns the bytes that the model reads as text: prompt, instruction, declarations of functions. */
function textBytes({ input, system_instruction, tools }: InteractionRequest): number {
  const prompts = typeof input === 'string' ? [input] : input.map((block) => (block.type === 'text' ? block.text : ''))
  const texts = [...prompts, system_instruction ?? '', tools === undefined ? '' : JSON.stringify(tools)]
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
}

function callerUrls({ input }: InteractionRequest): CallerUrl[] {
  if (typeof input === 'string') return []
  return input.flatMap((block, index) =>
    block.type === 'image' && block.uri !== undefined ? [{ url: block.uri, param: `input[${index}].uri` }] : [],
  )
}

/**
 * `POST /v1/images/generations`: three shapes of request, by the model (API specification, "Endpoints"). Errors raised
 * before the model is known carry the shapes of all of them.
 */
export const imagesEndpoint = defineEndpoint<{ readonly model: string }, ImagesOffer>({
  ...IMAGES,
  servesUnlisted: ({ images = {} }) => SHAPES.find((shape) => images[shape] !== undefined) ?? false,
  protocols: ({ images = {} }) => SHAPES.filter((shape) => images[shape] !== undefined),
  errors: anyImageErrors,
  shapes: new Map<string, Endpoint>([
    ['multimodal', multimodalImageEndpoint],
    ['interactions', interactionImageEndpoint],
    ['generations', openaiImageEndpoint],
  ]),
  unknownModel: { status: 400, code: 'InvalidParameter' },
  parse: neverCalled,
  isStream: neverCalled,
  estimate: neverCalled,
  createOperation: neverCalled,
})

/** The shapes of models without a row, the most common first; a vendor has one or the other. */
const SHAPES = ['generations', 'interactions', 'multimodal'] as const

function neverCalled(): never {
  throw new TypeError('the shape of the model answers for it')
}
