import { type CatalogModel, defineModel } from '../../../../src/catalog/model.ts'
import { DASHSCOPE_VIDEO_MODELS } from '../../../../src/catalog/models/dashscope-models.ts'
import { GatewayError } from '../../../../src/core/errors.ts'
import { videoEndpoint } from '../../../../src/endpoints/videos/video-endpoint.ts'
import type { VideoRequest } from '../../../../src/endpoints/videos/video-request.ts'

/** Returns a row of the catalog by its public id. */
export function videoModel(id: string): CatalogModel {
  const definition = DASHSCOPE_VIDEO_MODELS.find((row) => row.id === id)
  if (definition === undefined) throw new Error(`no such model: ${id}`)
  return defineModel(definition)
}

/** Returns code, field and text of a rejection. Fails if the call succeeds. */
export function refusalOf(call: () => unknown): { code: string; param: string | undefined; message: string } {
  try {
    call()
  } catch (error) {
    if (!GatewayError.isInstance(error)) throw error
    return { code: error.code, param: error.param, message: error.message }
  }
  throw new Error('nothing was refused')
}

export const PICTURE = 'https://cdn.example.net/first.png'
export const CLIP = 'https://cdn.example.net/clip.mp4'
export const SOUND = 'https://cdn.example.net/voice.mp3'

/** A valid input for each kind of model. */
export const GOOD_INPUT: Record<string, Record<string, unknown>> = {
  'wv2.5-t2v-preview': { prompt: 'A paper boat' },
  'wv2.5-i2v-preview': { prompt: 'A paper boat', img_url: PICTURE },
  'wv2.6-t2v': { prompt: 'A paper boat' },
  'wv2.6-i2v': { img_url: PICTURE, audio_url: SOUND },
  'wv2.6-i2v-flash': { img_url: PICTURE },
  'wv2.6-r2v': { prompt: 'character1 waves', reference_urls: [CLIP] },
  'wv2.6-r2v-flash': { prompt: 'character1 waves', reference_urls: [PICTURE] },
  'wv2.7-t2v': { prompt: 'A paper boat', audio_url: SOUND },
  'wv2.7-t2v-2026-04-25': { prompt: 'A paper boat' },
  'wv2.7-i2v': { media: [{ type: 'first_frame', url: PICTURE }] },
  'wv2.7-i2v-2026-04-25': { media: [{ type: 'first_clip', url: CLIP }] },
  'wv2.7-r2v': { prompt: 'Image 1 waves', media: [{ type: 'reference_image', url: PICTURE }] },
}

/** Parses a valid body for a model, with other fields. */
export function parse(model: string, fields: Record<string, unknown> = {}): VideoRequest {
  return videoEndpoint.parse({ model, input: GOOD_INPUT[model], ...fields }, videoModel(model))
}

/** Returns the rejection of such a body. */
export function refusal(model: string, fields: Record<string, unknown>): ReturnType<typeof refusalOf> {
  return refusalOf(() => parse(model, fields))
}
