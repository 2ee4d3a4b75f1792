import { GatewayError } from '../../core/errors.ts'
import { isJsonObject, isSet } from '../../core/json.ts'
import { invalidField } from '../field-errors.ts'

/** A video to render (API specification, "Video generation request"). `input` and `parameters` are the vendor's own. */
export interface VideoRequest {
  readonly model: string
  /** Duration in seconds. `parse` fills in a default. */
  readonly duration: number
  /** `480p`, `720p` or `1080p`. `parse` fills in a default. */
  readonly resolution: string
  /** Aspect ratio, such as `16:9`. Defaults to the ratio in `parameters`. */
  readonly aspect_ratio: string
  readonly input: Readonly<Record<string, unknown>>
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly webhook_url?: string
}

/** The two members of a request that belong to the vendor. */
export type VideoParts = Pick<VideoRequest, 'input' | 'parameters'>

/** Longest reason in characters. Some reasons repeat the caller's text, which may be megabytes long. */
const MAX_REASON_LENGTH = 500

/** Creates a 400 about one field of a video request. The message begins with the field. */
export function videoFault(param: string, reason: string): GatewayError {
  return invalidField(param, reason.length <= MAX_REASON_LENGTH ? reason : `${reason.slice(0, MAX_REASON_LENGTH)}…`)
}

/** Creates a 400 for a missing field, with the vendor's text: `Field required: input.media`. */
export function fieldRequired(param: string): GatewayError {
  return new GatewayError('invalid_request', { message: `Field required: ${param}`, param })
}

/** Maximum media in one list, many times the limit of any model. Bounds the number of addresses to check per request. */
const MAX_LISTED_MEDIA = 100

/** An address of media in `input`. */
export interface MediaAddress {
  readonly url: string
  /** `input.media[0].url`. */
  readonly param: string
}

/** Media that the vendor also accepts as `data:` URLs: single images. */
const INLINE_MEDIA_TYPES: ReadonlySet<unknown> = new Set(['first_frame', 'last_frame', 'reference_image'])

/**
 * Returns the addresses of all media in `input`, in either protocol.
 * @throws GatewayError `invalid_request` naming a field that is not an http(s) URL, a file uploaded to the vendor (`oss://`) or,
 *   if the vendor accepts them, an image as a `data:` URL; and for a list of more than 100.
 */
export function mediaAddresses(input: Readonly<Record<string, unknown>>): readonly MediaAddress[] {
  const found: MediaAddress[] = []
  const add = (param: string, value: unknown, takesData = false): void => {
    if (value === undefined || value === null) return
    if (typeof value !== 'string') throw videoFault(param, 'must be a URL')
    if (!isMediaUrl(value, takesData)) throw videoFault(param, `must be ${acceptedForms(takesData)}`)
    found.push({ url: value, param })
  }
  add('input.img_url', input['img_url'], true)
  add('input.audio_url', input['audio_url'])
  add('input.reference_voice', input['reference_voice'])
  for (const field of ['reference_urls', 'reference_video_urls']) {
    for (const [index, value] of listOf(`input.${field}`, input[field]).entries()) {
      if (!isSet(value)) throw videoFault(`input.${field}[${index}]`, 'must be a URL')
      add(`input.${field}[${index}]`, value)
    }
  }
  for (const [index, item] of listOf('input.media', input['media']).entries()) {
    const param = `input.media[${index}]`
    if (!isJsonObject(item)) throw videoFault(param, 'must be an object with type and url')
    add(`${param}.url`, item['url'], INLINE_MEDIA_TYPES.has(item['type']))
    add(`${param}.reference_voice`, item['reference_voice'])
  }
  return found
}

function listOf(param: string, value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw videoFault(param, 'must be an array')
  if (value.length > MAX_LISTED_MEDIA) throw videoFault(param, `must hold at most ${MAX_LISTED_MEDIA} items`)
  return value
}

function isMediaUrl(text: string, takesData: boolean): boolean {
  if (takesData && /^data:image\/[a-z0-9.+-]+;base64,/i.test(text)) return true
  return /^(?:https?|oss):\/\//i.test(text) && URL.canParse(text)
}

function acceptedForms(takesData: boolean): string {
  return takesData ? 'an http(s) or oss URL, or data:image/…;base64,…' : 'an http(s) or oss URL'
}
