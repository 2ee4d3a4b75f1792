import { Buffer } from 'node:buffer'
import type { ContentBlock } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { isJsonObject, objectOf, objectsIn } from '../../core/json.ts'
import { imageHeader } from '../../wire/image-header.ts'
import {
  defineTool,
  type GivenPicture,
  givenPicture,
  idempotencyKey,
  MAKES,
  model,
  noStream,
  picture,
  pictureUrl,
} from '../tool.ts'

/** Output of the image tools. Bytes are in image blocks of the result; URLs are also in links. */
const picturesOutput = z.object({
  model: z.string(),
  images: z.array(
    z.object({
      kind: z.enum(['inline', 'url']).describe('inline: an image block of the result, in the same order.'),
      mime_type: z.string().optional(),
      url: z.string().optional().describe('Valid for a limited time.'),
    }),
  ),
  text: z.string().optional().describe('Text of the model in addition to the images.'),
  interaction_id: z.string().optional().describe('For previous_interaction_id.'),
  status: z.string().optional().describe('failed, without images, if the model refused.'),
  usage: z.record(z.string(), z.unknown()).optional(),
})

/** Image in an answer. */
type Picture = { readonly data: string; readonly mimeType: string } | { readonly url: string }

type Members = Readonly<Record<string, unknown>>

/** Collects the images of an answer in any of the three response shapes. */
function answeredPictures(answer: Members, model: string) {
  const found = [...listedPictures(answer), ...choicePictures(answer), ...stepPictures(answer)]
  const texts = blocksOfSteps(answer).flatMap(({ type, text }) => (type === 'text' ? [String(text)] : []))
  const { id, status, usage } = answer
  const isInteraction = Array.isArray(answer['steps'])
  return {
    structured: {
      model,
      images: found.map((picture) =>
        'url' in picture ? { kind: 'url', url: picture.url } : { kind: 'inline', mime_type: picture.mimeType },
      ),
      ...(texts.length === 0 ? {} : { text: texts.join('\n') }),
      ...(isInteraction && typeof id === 'string' ? { interaction_id: id } : {}),
      ...(isInteraction && typeof status === 'string' ? { status } : {}),
      ...(isJsonObject(usage) ? { usage } : {}),
    },
    content: found.map(contentBlock),
  }
}

function contentBlock(picture: Picture, index: number): ContentBlock {
  return 'url' in picture
    ? { type: 'resource_link', uri: picture.url, name: `image ${index + 1}` }
    : { type: 'image', data: picture.data, mimeType: picture.mimeType }
}

/** Reads OpenAI's shape: `data[]` with `b64_json` or `url`. */
function listedPictures({ data }: Members): Picture[] {
  return objectsIn(data).flatMap(({ b64_json: base64, url }): Picture[] => {
    if (typeof base64 === 'string') return [{ data: base64, mimeType: typeOf(base64) }]
    return typeof url === 'string' ? [{ url }] : []
  })
}

/** Reads the multimodal shape: `output.choices[].message.content[].image`, a URL. */
function choicePictures({ output }: Members): Picture[] {
  return objectsIn(objectOf(output)['choices'])
    .flatMap(({ message }) => objectsIn(objectOf(message)['content']))
    .flatMap(({ image }) => (typeof image === 'string' ? [{ url: image }] : []))
}

/** Reads the interactions shape: an image may be in any block of any step. */
function stepPictures(answer: Members): Picture[] {
  return blocksOfSteps(answer).flatMap(({ type, data, mime_type: mimeType, uri }): Picture[] => {
    if (type !== 'image') return []
    if (typeof data === 'string') return [{ data, mimeType: typeof mimeType === 'string' ? mimeType : typeOf(data) }]
    return typeof uri === 'string' ? [{ url: uri }] : []
  })
}

function blocksOfSteps({ steps }: Members): Members[] {
  return objectsIn(steps).flatMap((step) => (step['type'] === 'model_output' ? objectsIn(step['content']) : []))
}

/** Amount of base64 that contains the headers of PNG and WebP, and of most JPEG files. */
const HEADER_BASE64_LENGTH = 65_536

/** Returns the media type from the image's first bytes, or `image/png`, the models' default, if they are not recognised. */
function typeOf(base64: string): string {
  const header = imageHeader([Buffer.from(base64.slice(0, HEADER_BASE64_LENGTH), 'base64')])
  return `image/${header?.format ?? 'png'}`
}

/** Arguments of `generate_image` for all three request shapes of the endpoint. */
const imageArguments = z.object({
  model,
  prompt: z.string().min(1).describe('Description of the image, or of the change to the reference images.'),
  reference_images: z.array(picture).max(16).optional().describe('Images to start from, if the model supports them.'),
  size: z
    .string()
    .optional()
    .describe('Size in the format of the model: 1024*1024, 1K or 1024x1024. See gateway://catalog/{model}.'),
  aspect_ratio: z.string().optional().describe('Such as 16:9, for models whose size is a tier (1K, 2K).'),
  n: z.int().min(1).max(10).optional().describe('Number of images.'),
  quality: z.string().optional().describe('low, medium or high, if the model supports it.'),
  negative_prompt: z.string().optional().describe('Content to avoid, if the model supports it.'),
  seed: z.int().min(0).optional().describe('Repeats an image approximately, if the model supports it.'),
  previous_interaction_id: z
    .string()
    .min(1)
    .optional()
    .describe('The interaction_id of an earlier answer, to continue from its images.'),
  extra: z
    .looseObject({ stream: noStream })
    .optional()
    .describe('Additional members of the request body, see gateway://reference/images.'),
  idempotency_key: idempotencyKey,
})

/** `POST /v1/images/generations`, in the shape of the model. */
export const generateImage = defineTool({
  name: 'generate_image',
  title: 'Generate an image',
  description:
    'Generates images from a prompt, and for some models from reference images. Returns image blocks, or links that are ' +
    'valid for a limited time. Charged by the image or by tokens.',
  annotations: MAKES,
  input: imageArguments,
  output: picturesOutput,
  async answer(args, { gateway, principal, json }) {
    const { model: asked, prompt } = args
    const found = gateway.catalog.find(asked)
    // The supported arguments of an unknown model are not known, so the gateway reports the error.
    if (found === undefined) await gateway.estimate(principal, { endpoint: 'images', body: { model: asked, prompt } })
    const answer = await json({
      method: 'POST',
      path: '/v1/images/generations',
      body: imageBody(args, found?.protocol),
      idempotencyKey: args.idempotency_key,
    })
    return answeredPictures(answer, found?.id ?? asked)
  },
})

/** `POST /v1/images/edits`, as JSON. */
export const editImage = defineTool({
  name: 'edit_image',
  title: 'Edit an image',
  description:
    'Edits images by an instruction, within a mask if there is one. For models of the kind image_edit; others that ' +
    'support reference images are called by generate_image. Charged by the image or by tokens.',
  annotations: MAKES,
  input: z.object({
    model,
    prompt: z.string().min(1).describe('Description of the change.'),
    images: z.array(picture).min(1).max(16).describe('The images. A mask applies to the first.'),
    mask: picture.optional().describe('A PNG of the same size; its transparent area is changed.'),
    n: z.int().min(1).max(10).optional().describe('Number of images.'),
    size: z.string().optional().describe('Such as 1024x1024. Default auto.'),
    quality: z.string().optional().describe('auto, low, medium or high.'),
    output_format: z.enum(['png', 'jpeg', 'webp']).optional(),
    background: z.enum(['transparent', 'opaque', 'auto']).optional(),
    response_format: z.enum(['b64_json', 'url']).optional().describe('url only if the model can return URLs.'),
    stream: noStream,
    idempotency_key: idempotencyKey,
  }),
  output: picturesOutput,
  async answer({ images, mask, idempotency_key: key, ...fields }, { gateway, json }) {
    const body = {
      ...fields,
      images: images.map((entry, index) => ({ image_url: pictureUrl(givenPicture(entry, `images[${index}]`)) })),
      ...(mask === undefined ? {} : { mask: { image_url: pictureUrl(givenPicture(mask, 'mask')) } }),
    }
    const answer = await json({ method: 'POST', path: '/v1/images/edits', body, idempotencyKey: key })
    return answeredPictures(answer, gateway.catalog.find(fields.model)?.id ?? fields.model)
  },
})

type ImageArguments = z.infer<typeof imageArguments>

/** Arguments that some of the request shapes do not have. */
type Optional =
  | 'reference_images'
  | 'aspect_ratio'
  | 'n'
  | 'quality'
  | 'negative_prompt'
  | 'seed'
  | 'previous_interaction_id'

type Body = Record<string, unknown>

/**
 * Builds the request body in the shape of the model's protocol (API specification, "Endpoints", note 1).
 * @throws GatewayError `unsupported_parameter` if the shape does not have an argument: nothing is dropped silently.
 */
function imageBody(args: ImageArguments, protocol: string | undefined): Body {
  const unknown = Object.keys(args).find((name) => !Object.hasOwn(imageArguments.shape, name))
  if (unknown !== undefined)
    throw unsupported(
      unknown,
      `${unknown}: there is no such argument; further members of the request body go into extra`,
    )
  const pictures = (args.reference_images ?? []).map((entry, index) =>
    givenPicture(entry, `reference_images[${index}]`),
  )
  if (protocol === 'multimodal') return { ...args.extra, ...multimodalBody(args, pictures) }
  if (protocol === 'interactions') return { ...args.extra, ...interactionBody(args, pictures) }
  return { ...args.extra, ...generationBody(args) }
}

function multimodalBody(args: ImageArguments, pictures: readonly GivenPicture[]): Body {
  refuse(args, ['aspect_ratio', 'quality', 'previous_interaction_id'])
  const images = pictures.map((given, index) => {
    if ('url' in given) return { image: given.url }
    throw unsupported('reference_images', `reference_images[${index}]: this model accepts images only by url`)
  })
  const { size, n, seed, negative_prompt } = args
  const settings = present({ size, n, seed, negative_prompt })
  const parameters = { ...objectOf(args.extra?.['parameters']), ...settings }
  return {
    model: args.model,
    input: { messages: [{ role: 'user', content: [...images, { text: args.prompt }] }] },
    ...(Object.keys(parameters).length === 0 ? {} : { parameters }),
  }
}

function interactionBody(args: ImageArguments, pictures: readonly GivenPicture[]): Body {
  refuse(args, ['n', 'quality', 'negative_prompt', 'seed'])
  const blocks = pictures.map((given, index) => {
    if (!('url' in given)) return { type: 'image', mime_type: given.mimeType, data: given.data }
    if (given.mimeType !== undefined) return { type: 'image', mime_type: given.mimeType, uri: given.url }
    const param = `reference_images[${index}].mime_type`
    throw new GatewayError('invalid_request', { message: `${param}: this model needs it with a url too`, param })
  })
  const format = present({ image_size: args.size, aspect_ratio: args.aspect_ratio })
  return {
    model: args.model,
    input: blocks.length === 0 ? args.prompt : [...blocks, { type: 'text', text: args.prompt }],
    ...(Object.keys(format).length === 0 ? {} : { response_format: { type: 'image', ...format } }),
    ...present({ previous_interaction_id: args.previous_interaction_id }),
  }
}

function generationBody(args: ImageArguments): Body {
  refuse(args, ['reference_images', 'aspect_ratio', 'negative_prompt', 'seed', 'previous_interaction_id'])
  const { model: id, prompt, size, n, quality } = args
  return { model: id, prompt, ...present({ size, n, quality }) }
}

function refuse(args: ImageArguments, names: readonly Optional[]): void {
  for (const name of names) {
    if (args[name] !== undefined) throw unsupported(name, `${name}: this model does not support it`)
  }
}

function unsupported(param: string, message: string): GatewayError {
  return new GatewayError('unsupported_parameter', { message, param })
}

function present(fields: Body): Body {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
