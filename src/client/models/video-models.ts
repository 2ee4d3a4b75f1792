import type {
  VideoFields,
  Wan26PictureRequest,
  Wan26ReferenceRequest,
  Wan26TextRequest,
  Wan27PictureRequest,
  Wan27ReferenceRequest,
  Wan27TextRequest,
} from './video-requests.ts'

/** What a model makes a video from: a text, a picture, or references. */
export type VideoTaskKind = 't2v' | 'i2v' | 'r2v'

/** What a builder may offer beyond what every model of a kind takes. */
export type VideoAbility = 'last_frame' | 'voices' | 'shots' | 'mute'

/** A row of {@link VideoModels}. */
export interface VideoModel<
  Kind extends VideoTaskKind,
  Request extends VideoFields,
  Ability extends VideoAbility = never,
> {
  readonly kind: Kind
  readonly request: Request
  readonly ability: Ability
}

/** Video models whose requests are narrowed. Add your own by `declare module 'signalbox/client'`. */
export interface VideoModels {
  'wv2.5-t2v-preview': VideoModel<'t2v', Wan26TextRequest<'480p' | '720p' | '1080p', 5 | 10>>
  'wv2.5-i2v-preview': VideoModel<'i2v', Wan26PictureRequest<'480p' | '720p' | '1080p', 5 | 10>>
  'wv2.6-t2v': VideoModel<'t2v', Wan26TextRequest<'720p' | '1080p', number, 'shots'>, 'shots'>
  'wv2.6-i2v': VideoModel<'i2v', Wan26PictureRequest<'720p' | '1080p', number, 'shots'>, 'shots'>
  'wv2.6-i2v-flash': VideoModel<
    'i2v',
    Wan26PictureRequest<'720p' | '1080p', number, 'shots' | 'sound'>,
    'shots' | 'mute'
  >
  'wv2.6-r2v': VideoModel<'r2v', Wan26ReferenceRequest<'720p' | '1080p', number, 'shots'>, 'shots'>
  'wv2.6-r2v-flash': VideoModel<
    'r2v',
    Wan26ReferenceRequest<'720p' | '1080p', number, 'shots' | 'sound'>,
    'shots' | 'mute'
  >
  'wv2.7-t2v': VideoModel<'t2v', Wan27TextRequest>
  'wv2.7-t2v-2026-04-25': VideoModel<'t2v', Wan27TextRequest>
  'wv2.7-i2v': VideoModel<'i2v', Wan27PictureRequest, 'last_frame'>
  'wv2.7-i2v-2026-04-25': VideoModel<'i2v', Wan27PictureRequest, 'last_frame'>
  'wv2.7-r2v': VideoModel<'r2v', Wan27ReferenceRequest, 'voices'>
}

/** A request to a video model that {@link VideoModels} does not know. */
export interface OtherVideoRequest {
  readonly duration?: number
  readonly resolution?: string
  readonly aspect_ratio?: string
  readonly webhook_url?: string
  /** The vendor's own. */
  readonly input: Readonly<Record<string, unknown>>
  /** The vendor's own. */
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}
