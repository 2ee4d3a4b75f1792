import { createClient, type VideoTask } from '../../src/client/index.ts'

const client = createClient({ baseURL: 'http://127.0.0.1:8787/v1' })
const url = 'https://cdn.example.net/a.png'

// Each of the two layouts takes its own fields.
const task: VideoTask = await client.videos.generate({
  model: 'wv2.7-i2v',
  duration: 5,
  resolution: '720p',
  input: { prompt: 'a boat', media: [{ type: 'first_frame', url }] },
  parameters: { resolution: '720P', duration: 5, prompt_extend: true },
})
await client.videos.generate({
  model: 'wv2.6-i2v',
  input: { prompt: 'a boat', img_url: url, audio_url: url },
  parameters: { resolution: '1080P', shot_type: 'multi' },
})
await client.videos.generate({
  model: 'wv2.6-r2v',
  input: { prompt: 'character1 waves', reference_urls: [url] },
  parameters: { size: '1280*720' },
})
await client.videos.generate({
  model: 'wv2.7-r2v',
  aspect_ratio: '9:16',
  input: { prompt: 'Image 1 waves', media: [{ type: 'reference_image', url, reference_voice: url }] },
  parameters: { ratio: '9:16' },
})

await client.videos.generate({
  model: 'wv2.7-i2v',
  // @ts-expect-error the field of 2.6
  input: { prompt: 'a boat', img_url: url },
})
await client.videos.generate({
  model: 'wv2.6-i2v',
  // @ts-expect-error the field of 2.7
  input: { prompt: 'a boat', media: [{ type: 'first_frame', url }] },
})
await client.videos.generate({
  model: 'wv2.6-i2v',
  // @ts-expect-error without the picture
  input: { prompt: 'a boat' },
})
await client.videos.generate({
  model: 'wv2.7-i2v',
  input: {
    media: [
      { type: 'first_frame', url },
      // @ts-expect-error a reference belongs to r2v
      { type: 'reference_image', url },
    ],
  },
})
await client.videos.generate({
  model: 'wv2.7-t2v',
  // @ts-expect-error only 2.5 renders this tier
  resolution: '480p',
  input: { prompt: 'a boat' },
})
await client.videos.generate({
  model: 'wv2.5-t2v-preview',
  resolution: '480p',
  // @ts-expect-error 2.5 renders 5 or 10 seconds
  duration: 7,
  input: { prompt: 'a boat' },
  parameters: {
    // @ts-expect-error a size of no tier
    size: '1281*720',
  },
})
await client.videos.generate({
  model: 'wv2.7-t2v',
  input: { prompt: 'a boat' },
  parameters: {
    // @ts-expect-error the geometry of 2.6
    size: '1280*720',
  },
})
await client.videos.generate({
  model: 'wv2.7-t2v',
  // @ts-expect-error no such shape
  aspect_ratio: '2:1',
  input: { prompt: 'a boat' },
})
await client.videos.generate({
  model: 'wv2.6-i2v',
  input: { img_url: url },
  parameters: {
    // @ts-expect-error only the flash models can be mute
    audio: false,
  },
})

// A model that the types do not know is not narrowed, nor is one whose name is known at run time only.
await client.videos.generate({ model: 'a-model-of-mine', input: { anything: 1 }, parameters: { size: 'any' } })
declare const someModel: string
await client.videos.generate({ model: someModel, input: { anything: 1 }, a_new_field: true })

// @ts-expect-error without a model
await client.videos.generate({ input: { prompt: 'a boat' } })

// A request that a function returns is checked too.
function request(prompt: string) {
  return { model: 'wv2.7-t2v', resolution: '1080p', input: { prompt } } as const
}
await client.videos.generate(request('a boat'))

const status: 'queued' | 'in_progress' | 'unknown' | 'completed' | 'failed' | 'cancelled' = task.status
await client.videos.wait(task, { onProgress: ({ task: seen, elapsedMs }) => void [seen.status, elapsedMs.toFixed()] })
await client.videos.wait(task.id)
// @ts-expect-error no such state
export const isDone = status === 'done'

// The vendor's own ids are narrowed like the public ones.
await client.videos.generate({ model: 'wan2.7-t2v', resolution: '1080p', input: { prompt: 'a boat' } })
await client.videos.generate({
  model: 'wan2.7-t2v',
  // @ts-expect-error only 2.5 renders this tier
  resolution: '480p',
  input: { prompt: 'a boat' },
})
