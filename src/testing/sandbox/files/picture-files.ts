import { drawPicture, type PictureFormat, type PictureRequest } from '../pictures/draw-picture.ts'
import type { SandboxCall } from '../sandbox-call.ts'
import { fileReply, type SandboxOperation } from '../sandbox-operation.ts'
import { isLinkOver, signedLink } from './signed-link.ts'
import { STORAGE_ERRORS } from './storage-errors.ts'

/** No stand-in gives a link to a larger picture, and larger ones take long to draw. */
const MAX_SIDE = 4096

const PATH = /^\/sandbox-files\/([\w.~-]{1,100})-([1-9]\d{0,4})x([1-9]\d{0,4})\.(png|jpeg|webp)$/

/**
 * Files that the stand-ins' answers link to: `GET /sandbox-files/<seed>-<width>x<height>.<format>`. The picture is drawn when
 * it is fetched, so nothing is stored. No credential is needed; a link that says `Expires` is refused afterwards.
 */
export const PICTURE_FILES: SandboxOperation = {
  vendor: 'files',
  operation: 'picture',
  errors: STORAGE_ERRORS,
  needsJson: false,
  matches: ({ method, path }) => method === 'GET' && pictureOf(path) !== undefined,
  promptText: () => '',
  answer(call, context) {
    if (isLinkOver(call, context.nowMs)) return STORAGE_ERRORS.status(403, 'Request has expired.')
    const picture = pictureOf(call.path)
    if (picture === undefined) return STORAGE_ERRORS.status(404)
    return fileReply(`image/${picture.format}`, drawPicture(picture))
  },
}

/** A {@link signedLink} to a picture. The seed must be letters, digits, `_`, `.`, `~` and `-`, at most 100. */
export function pictureLink(call: Pick<SandboxCall, 'headers'>, picture: PictureRequest, nowMs: number): string {
  const path = `/sandbox-files/${picture.seed}-${picture.width}x${picture.height}.${picture.format}`
  return signedLink(call, path, { madeMs: nowMs })
}

function pictureOf(path: string): PictureRequest | undefined {
  const [, seed = '', width, height, format] = PATH.exec(path) ?? []
  const sides = { width: Number(width), height: Number(height) }
  if (!(sides.width <= MAX_SIDE && sides.height <= MAX_SIDE)) return undefined
  return { ...sides, seed, format: format as PictureFormat }
}
