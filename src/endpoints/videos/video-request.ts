/** A video to render (API specification, "Video generation request"). `input` and `parameters` are the vendor's own. */
export interface VideoRequest {
  readonly model: string
  /** Seconds. Filled in by `parse` where the caller left it out. */
  readonly duration: number
  /** `480p`, `720p`, `1080p`. Filled in by `parse` where the caller left it out. */
  readonly resolution: string
  /** `16:9`; read from `parameters` where the caller left it out. */
  readonly aspect_ratio: string
  readonly input: Readonly<Record<string, unknown>>
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly webhook_url?: string
}
