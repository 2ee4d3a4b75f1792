import { z } from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { idempotencyKey, model, picture } from './arguments.ts'
import { type GivenPicture, givenPicture } from './picture-argument.ts'

/** Arguments of `generate_image`: one shape for what the endpoint takes in three. */
export const imageArguments = z.object({
  model,
  prompt: z.string().min(1).describe('What to draw, or what to change in the reference images.'),
  reference_images: z.array(picture).max(16).optional().describe('Pictures to start from, for models that take them.'),
  size: z
    .string()
    .optional()
    .describe('As the model writes it: 1024*1024, 1K or 1024x1024. See gateway://catalog/{model}.'),
  aspect_ratio: z.string().optional().describe('Such as 16:9, for models whose size is a tier (1K, 2K).'),
  n: z.int().min(1).max(10).optional().describe('How many pictures.'),
  quality: z.string().optional().describe('For models that have it: low, medium, high.'),
  negative_prompt: z.string().optional().describe('What to avoid, for models that take it.'),
  seed: z.int().min(0).optional().describe('Repeats a picture approximately, for models that take it.'),
  previous_interaction_id: z
    .string()
    .min(1)
    .optional()
    .describe('The interaction_id of an earlier answer, to go on from its pictures.'),
  extra: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Further members of the request body, see gateway://reference/images.'),
  idempotency_key: idempotencyKey,
})

/** Checked arguments of `generate_image`. */
export type ImageArguments = z.infer<typeof imageArguments>

/** Arguments that not every shape of request has a place for. */
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
 * Writes the request body in the shape that the model's protocol has (API specification, "Endpoints", note 1).
 * @throws GatewayError `unsupported_parameter` for an argument that has no place in it: nothing is dropped in silence.
 */
export function imageBody(args: ImageArguments, protocol: string | undefined): Body {
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
    throw unsupported('reference_images', `reference_images[${index}]: this model takes pictures by url only`)
  })
  const { size, n, seed, negative_prompt } = args
  const settings = present({ size, n, seed, negative_prompt })
  const given = args.extra?.['parameters']
  const parameters = typeof given === 'object' && given !== null ? { ...given, ...settings } : settings
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
    if (args[name] !== undefined) throw unsupported(name, `${name}: this model does not take it`)
  }
}

function unsupported(param: string, message: string): GatewayError {
  return new GatewayError('unsupported_parameter', { message, param })
}

function present(fields: Body): Body {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
