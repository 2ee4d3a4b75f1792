import type { SandboxCall } from '../sandbox-call.ts'
import { fileReply, type SandboxOperation, type SandboxReply } from '../sandbox-operation.ts'
import { drawVideo, isDrawable, type VideoDrawing } from '../videos/draw-video.ts'
import { isLinkOver, signedLink } from './signed-link.ts'
import { STORAGE_ERRORS } from './storage-errors.ts'

const PATH = /^\/sandbox-files\/([\w.~-]{1,100})-([1-9]\d{0,4})x([1-9]\d{0,4})-([1-9]\d{0,6})ms\.mp4$/

/**
 * Videos that the stand-ins' answers link to: `GET /sandbox-files/<seed>-<width>x<height>-<duration>ms.mp4`. The video is drawn
 * when it is fetched, so nothing is stored. One range of bytes can be asked for (RFC 9110, 14.2); a list of ranges gets the
 * whole file. No credential is needed; a link that says `Expires` is refused afterwards.
 */
export const VIDEO_FILES: SandboxOperation = {
  vendor: 'files',
  operation: 'video',
  errors: STORAGE_ERRORS,
  needsJson: false,
  matches: ({ method, path }) => method === 'GET' && videoOf(path) !== undefined,
  promptText: () => '',
  answer(call, context) {
    if (isLinkOver(call, context.nowMs)) return STORAGE_ERRORS.status(403, 'Request has expired.')
    const video = videoOf(call.path)
    if (video === undefined) return STORAGE_ERRORS.status(404)
    return rangeReply(drawVideo(video), call.headers['range'])
  },
}

/**
 * A {@link signedLink} to a video. The seed must be letters, digits, `_`, `.`, `~` and `-`, at most 100.
 * @param madeMs Unix milliseconds from which on the link is good for 24 hours.
 */
export function videoLink(call: Pick<SandboxCall, 'headers'>, video: VideoDrawing, madeMs: number): string {
  const path = `/sandbox-files/${video.seed}-${video.width}x${video.height}-${video.durationMs}ms.mp4`
  return signedLink(call, path, { madeMs })
}

function videoOf(path: string): VideoDrawing | undefined {
  const [, seed = '', width, height, duration] = PATH.exec(path) ?? []
  const video = { seed, width: Number(width), height: Number(height), durationMs: Number(duration) }
  return isDrawable(video) ? video : undefined
}

function rangeReply(bytes: Uint8Array, range: string | undefined): SandboxReply {
  const acceptsRanges = ['accept-ranges', 'bytes']
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(range ?? '') ?? []
  if (from === '' && to === '') return fileReply('video/mp4', bytes, acceptsRanges)
  // Without a beginning it is so many bytes of the end.
  const start = from === '' ? Math.max(bytes.length - Number(to), 0) : Number(from)
  const end = from === '' || to === '' ? bytes.length - 1 : Math.min(Number(to), bytes.length - 1)
  // An end before the beginning makes the header invalid, and it is then ignored.
  if (from !== '' && to !== '' && Number(to) < start) return fileReply('video/mp4', bytes, acceptsRanges)
  if (start > end) {
    const refusal = STORAGE_ERRORS.status(416, 'The requested range is not satisfiable.')
    return { ...refusal, headers: [...refusal.headers, 'content-range', `bytes */${bytes.length}`] }
  }
  const place = ['content-range', `bytes ${start}-${end}/${bytes.length}`]
  return { ...fileReply('video/mp4', bytes.subarray(start, end + 1), [...acceptsRanges, ...place]), status: 206 }
}
