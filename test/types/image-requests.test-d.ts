import {
  createClient,
  type ImageStream,
  type InteractionEvent,
  type InteractionImageAnswer,
  type MultimodalImageAnswer,
  type OpenAIImageAnswer,
  type OpenAIImageEditEvent,
  type OpenAIImageEvent,
} from '../../src/client/index.ts'

const client = createClient({ baseURL: 'http://127.0.0.1:8787/v1' })
const picture = 'https://cdn.example.net/a.png'

// The answer has the shape of the model.
const multimodal: MultimodalImageAnswer = await client.images.generate({
  model: 'qw-image-2.0',
  input: { messages: [{ role: 'user', content: [{ image: picture }, { text: 'a boat' }] }] },
  parameters: { size: '1472*1140', n: 1, seed: 7 },
})
const interaction: InteractionImageAnswer = await client.images.generate({
  model: 'gmn-3.1-flash-image-preview',
  input: 'a boat',
  response_format: { type: 'image', image_size: '512px', aspect_ratio: '8:1' },
  generation_config: { thinking_level: 'high' },
})
const openai = await client.images.generate({
  model: 'gp-image-2',
  prompt: 'a boat',
  size: '1536x864',
  background: 'transparent',
})
const base64: string | undefined = openai.data[0]?.b64_json
export const answers = [multimodal.output, interaction.steps, base64]

await client.images.generate({
  model: 'qw-image-2.0',
  input: { messages: [{ role: 'user', content: [{ text: 'a boat' }] }] },
  parameters: {
    // @ts-expect-error joined by *
    size: '1024x1024',
  },
})
await client.images.generate({
  model: 'qw-image-2.0',
  input: { messages: [{ role: 'user', content: [{ text: 'a boat' }] }] },
  parameters: {
    // @ts-expect-error exactly one
    n: 2,
  },
})
await client.images.generate({
  model: 'qw-image-max',
  // @ts-expect-error this model works from text alone
  input: { messages: [{ role: 'user', content: [{ image: picture }, { text: 'a boat' }] }] },
})
await client.images.generate({
  model: 'qw-image-edit',
  input: { messages: [{ role: 'user', content: [{ image: picture }, { text: 'a boat' }] }] },
  parameters: {
    // @ts-expect-error it keeps the size of the picture
    size: '1024*1024',
  },
})
await client.images.generate({
  model: 'gmn-2.5-flash-image',
  input: 'a boat',
  // @ts-expect-error 1K only
  response_format: { type: 'image', image_size: '2K' },
})
await client.images.generate({
  model: 'gmn-3-pro-image-preview',
  input: 'a boat',
  // @ts-expect-error a ratio of the flash model
  response_format: { type: 'image', aspect_ratio: '8:1' },
})
await client.images.generate({
  model: 'gmn-2.5-flash-image',
  input: 'a boat',
  // @ts-expect-error it does not think
  generation_config: { thinking_level: 'high' },
})
await client.images.generate({
  model: 'gp-image-2',
  prompt: 'a boat',
  // @ts-expect-error a tier of another shape
  size: '2K',
})
await client.images.generate({
  model: 'gp-image-2',
  // @ts-expect-error the prompt of another shape
  input: 'a boat',
})
await client.images.generate({ model: 'a-model-of-mine', anything: 1 })

await client.images.edit({ model: 'gp-image-2', prompt: 'a boat', image: new Blob([]), output_format: 'webp' })
await client.images.edit({ model: 'gp-image-1', prompt: 'a boat', image: [new Uint8Array(1), { path: 'a.png' }] })
await client.images.edit({
  model: 'de-2',
  prompt: 'a boat',
  image: new Blob([]),
  size: '256x256',
  response_format: 'url',
})
await client.images.edit({ model: 'a-model-of-mine', prompt: 'a boat', image: new Blob([]), strength: 0.5 })
await client.images.edit({
  model: 'gp-image-2',
  prompt: 'a boat',
  // @ts-expect-error a path is never a bare string
  image: 'a.png',
})
await client.images.edit({
  model: 'gp-image-1',
  prompt: 'a boat',
  image: new Blob([]),
  // @ts-expect-error a size of the other family
  size: '256x256',
})
await client.images.edit({
  model: 'de-2',
  prompt: 'a boat',
  image: new Blob([]),
  // @ts-expect-error this model has no choice of format
  output_format: 'webp',
})

await client.images.generate({ model: 'gpt-image-1.5', prompt: 'a boat', size: '1536x1024', output_format: 'webp' })
await client.images.generate({
  model: 'gpt-image-1-mini',
  prompt: 'a boat',
  // @ts-expect-error this model has listed sizes only
  size: '1600x900',
})

await client.images.generate({ model: 'gpt-image-2.6-flare', prompt: 'a boat', quality: 'max', size: '1536x864' })
await client.images.generate({ model: 'dall-e-2', prompt: 'a boat', size: '256x256', response_format: 'url' })
await client.images.generate({ model: 'gemini-nano-banana-2.1', input: 'a boat' })
await client.images.generate({
  model: 'gpt-image-2',
  prompt: 'a boat',
  // @ts-expect-error a quality of later models
  quality: 'max',
})

// Streams: the events have the shape of the model, where it has any.
const drawn: ImageStream<OpenAIImageEvent> = await client.images.generate({
  model: 'gp-image-2',
  prompt: 'a boat',
  stream: true,
  partial_images: 3,
})
for await (const event of drawn) {
  if (event.type === 'image_generation.completed') void event.usage?.output_tokens
  // @ts-expect-error the other event has no usage, but its place
  else void [event.partial_image_index.toFixed(), event.usage]
}
const streamed: ImageStream<InteractionEvent> = await client.images.generate({
  model: 'gmn-2.5-flash-image',
  input: 'a boat',
  stream: true,
})
streamed.abort()
for await (const event of streamed) {
  if (event.event_type === 'step.delta' && event.delta.type === 'image') void event.delta.data?.length
}
const edited: ImageStream<OpenAIImageEditEvent> = await client.images.edit({
  model: 'gp-image-1',
  prompt: 'a boat',
  image: new Blob([]),
  stream: true,
})
declare const wish: boolean
const either: OpenAIImageAnswer | ImageStream<OpenAIImageEvent> = await client.images.generate({
  model: 'gp-image-2',
  prompt: 'a boat',
  stream: wish,
})
const unknown = await client.images.generate({ model: 'a-model-of-mine', anything: 1, stream: true })
for await (const event of unknown) void event.event_type?.length
export const streams = [edited, either]

await client.images.generate({
  model: 'qw-image-2.0',
  input: { messages: [{ role: 'user', content: [{ text: 'a boat' }] }] },
  // @ts-expect-error this shape has no streams
  stream: true,
})
await client.images.edit({
  model: 'de-2',
  prompt: 'a boat',
  image: new Blob([]),
  // @ts-expect-error nor has this model
  stream: true,
})
await client.images.generate({
  model: 'gp-image-2',
  prompt: 'a boat',
  stream: true,
  // @ts-expect-error at most 3
  partial_images: 4,
})
await client.images.generate({
  model: 'gmn-2.5-flash-image',
  input: 'a boat',
  stream: true,
  // @ts-expect-error a field of another shape
  partial_images: 1,
})

// The vendor's own ids are narrowed like the public ones.
await client.images.generate({
  model: 'gemini-2.5-flash-image',
  input: 'a boat',
  // @ts-expect-error 1K only
  response_format: { type: 'image', image_size: '4K' },
})
await client.images.edit({
  model: 'dall-e-2',
  prompt: 'a boat',
  image: new Blob([]),
  // @ts-expect-error a size of the other family
  size: '1536x1024',
})
