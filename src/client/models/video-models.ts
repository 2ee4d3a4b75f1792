import type { VideoAbilities } from '../../catalog/model-facts.ts'

/** Input that a model makes a video from: text, an image, or references. */
export type VideoTaskKind = VideoAbilities['task']

/** Abilities of a builder that not every model of a kind has. */
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

/** Video models with narrowed requests, under their ids and aliases. Add your own by `declare module 'signalbox/client'`. */
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
  'wan2.5-t2v-preview': VideoModels['wv2.5-t2v-preview']
  'wan2.5-i2v-preview': VideoModels['wv2.5-i2v-preview']
  'wan2.6-t2v': VideoModels['wv2.6-t2v']
  'wan2.6-i2v': VideoModels['wv2.6-i2v']
  'wan2.6-i2v-flash': VideoModels['wv2.6-i2v-flash']
  'wan2.6-r2v': VideoModels['wv2.6-r2v']
  'wan2.6-r2v-flash': VideoModels['wv2.6-r2v-flash']
  'wan2.7-t2v': VideoModels['wv2.7-t2v']
  'wan2.7-t2v-2026-04-25': VideoModels['wv2.7-t2v-2026-04-25']
  'wan2.7-i2v': VideoModels['wv2.7-i2v']
  'wan2.7-i2v-2026-04-25': VideoModels['wv2.7-i2v-2026-04-25']
  'wan2.7-r2v': VideoModels['wv2.7-r2v']
}

/** A request to a video model outside {@link VideoModels}. */
export interface OtherVideoRequest {
  readonly duration?: number
  readonly resolution?: string
  readonly aspect_ratio?: string
  readonly webhook_url?: string
  /** Input in the vendor's own format. */
  readonly input: Readonly<Record<string, unknown>>
  /** Parameters in the vendor's own format. */
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}

/** Aspect ratios of a video. A first frame determines its own ratio. */
export type VideoRatio = '16:9' | '9:16' | '1:1' | '4:3' | '3:4'

/** Fields that decide the price, and the webhook URL (API specification, "Video generation request"). */
export interface VideoFields<Tier extends string = string, Seconds extends number = number> {
  /** Duration in whole seconds. Default 5. */
  readonly duration?: Seconds
  /** Resolution. Default `720p`. */
  readonly resolution?: Tier
  readonly aspect_ratio?: VideoRatio
  /** URL that is called when the video has ended. */
  readonly webhook_url?: string
}

interface Prompted {
  readonly prompt: string
  readonly negative_prompt?: string
}

interface Settings<Seconds extends number> {
  /** Duration, equal to the top-level field, which supplies it if it is omitted here. */
  readonly duration?: Seconds
  readonly prompt_extend?: boolean
  readonly watermark?: boolean
  readonly seed?: number
}

/** Pixels by tier, for models of the 2.5 and 2.6 layout (DashScope, text-to-video). */
interface SizesByTier {
  '480p': '832*480' | '480*832' | '624*624'
  '720p': '1280*720' | '720*1280' | '960*960' | '1088*832' | '832*1088'
  '1080p': '1920*1080' | '1080*1920' | '1440*1440' | '1632*1248' | '1248*1632'
}

interface Wan26Settings<Tier extends keyof SizesByTier, Seconds extends number> extends Settings<Seconds> {
  /** Size in pixels. It agrees with `resolution` and `aspect_ratio`, which supply it if it is omitted. */
  readonly size?: SizesByTier[Tier]
}

/** With `multi`, the video may cut between shots. */
interface Shots {
  readonly shot_type?: 'single' | 'multi'
}

/** Whether the video has audio. If false, it is cheaper if the price list says so. */
interface Sound {
  readonly audio?: boolean
}

/** More parameters of the 2.6 layout. A model may support shots, audio, or neither. */
type Wan26Extras<Knows extends 'shots' | 'sound'> = ('shots' extends Knows ? Shots : unknown) &
  ('sound' extends Knows ? Sound : unknown)

/** Text to video in the layout of 2.5 and 2.6. */
export interface Wan26TextRequest<
  Tier extends keyof SizesByTier,
  Seconds extends number,
  Knows extends 'shots' | 'sound' = never,
> extends VideoFields<Tier, Seconds> {
  readonly input: Prompted & { readonly audio_url?: string }
  readonly parameters?: Wan26Settings<Tier, Seconds> & Wan26Extras<Knows>
}

/** Image to video in the layout of 2.5 and 2.6. */
export interface Wan26PictureRequest<
  Tier extends keyof SizesByTier,
  Seconds extends number,
  Knows extends 'shots' | 'sound' = never,
> extends VideoFields<Tier, Seconds> {
  readonly input: Partial<Prompted> & { readonly img_url: string; readonly audio_url?: string }
  readonly parameters?: Wan26Settings<Tier, Seconds> & { readonly resolution?: Uppercase<Tier> } & Wan26Extras<Knows>
}

/** References to video in the layout of 2.6. */
export interface Wan26ReferenceRequest<
  Tier extends keyof SizesByTier,
  Seconds extends number,
  Knows extends 'shots' | 'sound' = never,
> extends VideoFields<Tier, Seconds> {
  readonly input: Prompted & { readonly reference_urls: readonly string[] }
  readonly parameters?: Wan26Settings<Tier, Seconds> & Wan26Extras<Knows>
}

interface Wan27Settings extends Settings<number> {
  readonly resolution?: '720P' | '1080P'
}

interface Wan27Shape {
  readonly ratio?: VideoRatio
}

/** Image, clip or audio track that a video of 2.7 begins with, ends with, or follows. Each type at most once. */
export interface FrameMedia {
  readonly type: 'first_frame' | 'last_frame' | 'first_clip' | 'driving_audio'
  readonly url: string
}

/** Subject of a video of 2.7, with its voice, or the first frame of the video. */
export type ReferenceMedia =
  | { readonly type: 'reference_image' | 'reference_video'; readonly url: string; readonly reference_voice?: string }
  | { readonly type: 'first_frame'; readonly url: string }

/** Text to video in the layout of 2.7. */
export interface Wan27TextRequest extends VideoFields<'720p' | '1080p'> {
  readonly input: Prompted & { readonly audio_url?: string }
  readonly parameters?: Wan27Settings & Wan27Shape
}

/** Image to video in the layout of 2.7. */
export interface Wan27PictureRequest extends VideoFields<'720p' | '1080p'> {
  readonly input: Partial<Prompted> & { readonly media: readonly FrameMedia[] }
  readonly parameters?: Wan27Settings
}

/** References to video in the layout of 2.7. */
export interface Wan27ReferenceRequest extends VideoFields<'720p' | '1080p'> {
  readonly input: Prompted & { readonly media: readonly ReferenceMedia[] }
  readonly parameters?: Wan27Settings & Wan27Shape
}
