import { embedding, video } from '../../src/client/builders/index.ts'
import {
  type ChatFields,
  createClient,
  type EmbeddingFields,
  type VideoModel,
  type Wan27TextRequest,
} from '../../src/client/index.ts'

// Inside this repository the entry has no other name; a host writes 'signalbox/client'.
declare module '../../src/client/index.ts' {
  interface EmbeddingModels {
    'host-embedding': { readonly request: EmbeddingFields<64 | 128> }
  }
  interface ChatModels {
    'host-chat': { readonly request: ChatFields & { readonly tone?: 'dry' | 'warm' } }
  }
  interface VideoModels {
    'host-video': VideoModel<'t2v', Wan27TextRequest>
  }
}

const client = createClient({ baseURL: 'http://127.0.0.1:8787/v1' })

await client.embeddings.create({ model: 'host-embedding', input: 'a', dimensions: 128 })
await client.embeddings.create({
  model: 'host-embedding',
  input: 'a',
  // @ts-expect-error what the host has declared
  dimensions: 256,
})
await client.chat.completions.create({ model: 'host-chat', messages: [{ role: 'user', content: 'a' }], tone: 'dry' })
await client.chat.completions.create({
  model: 'host-chat',
  messages: [{ role: 'user', content: 'a' }],
  // @ts-expect-error what the host has declared
  tone: 'loud',
})
embedding('host-embedding').dimensions(64)
// @ts-expect-error what the host has declared
embedding('host-embedding').dimensions(65)
video('host-video', { protocol: 'wan-2-7' }).aspectRatio('16:9')
// @ts-expect-error a step of r2v
video('host-video', { protocol: 'wan-2-7' }).reference
