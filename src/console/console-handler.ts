import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { type AdminHandlerOptions, adminHandler, isAdminPath } from '../admin/admin-handler.ts'
import { GatewayError } from '../core/errors.ts'
import { type ByteSink, checkGateway, type ExchangeHandler, type GatewayRequest } from '../core/exchange.ts'
import { timeOrderedIds } from '../core/ids.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import { openaiErrors } from '../endpoints/error-dialect.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { respondError, respondWhole } from '../pipeline/respond.ts'

/** Options of {@link consoleHandler}. */
export interface ConsoleHandlerOptions extends AdminHandlerOptions {
  /**
   * Path of the page in the browser, such as `/ops/console/`; required only behind a proxy that removes it completely. Defaults to
   * the path of the request.
   */
  readonly publicPath?: string | undefined
}

const CONSOLE_HANDLER_OPTIONS = memberNames<ConsoleHandlerOptions>()(
  'publicPath readOnly logger clock operatorKeys authorize clientAddress',
)

/**
 * Serves a page for operators, and the admin API that it uses, behind one mount. Without an operator, the page shows nothing.
 * @throws TypeError as {@link adminHandler} does, or if `publicPath` is not a path.
 */
export function consoleHandler(gateway: Gateway, options: ConsoleHandlerOptions = {}): ExchangeHandler {
  checkMembers(options, CONSOLE_HANDLER_OPTIONS, 'consoleHandler')
  checkGateway(gateway, 'consoleHandler')
  const { publicPath, ...ofAdmin } = options
  if (publicPath !== undefined && !/^\/(?:[\w.~%-]+\/)*$/.test(publicPath))
    throw new TypeError('publicPath must be a path that begins and ends with a slash, such as "/ops/console/"')
  const admin = adminHandler(gateway, ofAdmin)
  const page = new ConsolePage(consoleAssets(), publicPath)
  return {
    answersAtMount: true,
    handle: (request, sink) => (page.has(request.path) ? page : admin).handle(request, sink),
  }
}

/**
 * No text of a caller or a model can become code: only the page's own file runs, and nothing is loaded from or sent to other origins.
 * No page may embed it in a frame.
 */
const SECURITY_HEADERS: readonly string[] = [
  'content-security-policy',
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
  ...['x-frame-options', 'DENY', 'x-content-type-options', 'nosniff', 'referrer-policy', 'no-referrer'],
  ...['cross-origin-opener-policy', 'same-origin'],
]

/** The page and its files, at any path: all of its URLs are relative. */
class ConsolePage implements ExchangeHandler {
  readonly #assets: ConsoleAssets
  readonly #page: ConsoleAsset
  readonly #isPublic: boolean

  constructor(assets: ConsoleAssets, publicPath: string | undefined) {
    this.#assets = assets
    this.#page = assetOf(pageText(assets, publicPath), 'text/html; charset=utf-8')
    this.#isPublic = publicPath !== undefined
  }

  /** Whether a path belongs to the page or to one of its files. A mount may have its own `/v1/`. */
  has(path: string): boolean {
    if (isAdminPath(path)) return false
    return !path.includes('/v1/') || path.endsWith('/') || this.#assets.byName.has(fileName(path))
  }

  handle(request: GatewayRequest, sink: ByteSink): void {
    const { method, path, originalPath = path } = request
    const name = fileName(path)
    const asset = this.#assets.byName.get(name)
    if (method !== 'GET' && method !== 'HEAD') refuse(sink, 'method_not_allowed', ['allow', 'GET, HEAD'])
    else if (asset !== undefined) send(request, sink, asset, 'public, max-age=31536000, immutable')
    // A file that browsers or scanners request by themselves.
    else if (name.includes('.')) refuse(sink, 'route_not_found', [])
    else if (this.#isPublic || originalPath.endsWith('/')) send(request, sink, this.#page, 'no-cache')
    else redirectBelow(sink, originalPath)
  }
}

function fileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** Redirects to the same path with a slash. The target is relative, because only the browser knows the part before the path. */
function redirectBelow(sink: ByteSink, path: string): void {
  const location = `./${path.slice(path.lastIndexOf('/') + 1)}/`
  respondWhole(sink, { status: 308, headers: ['location', location, 'content-length', '0'] }, [''])
}

function send(request: GatewayRequest, sink: ByteSink, asset: ConsoleAsset, cached: string): void {
  const isGzipped = /\bgzip\b/i.test(request.header('accept-encoding') ?? '')
  const bytes = isGzipped ? asset.gzipped : asset.bytes
  const headers = [
    ...['content-type', asset.contentType, 'content-length', String(bytes.byteLength)],
    ...['cache-control', cached, 'vary', 'accept-encoding'],
    ...(isGzipped ? ['content-encoding', 'gzip'] : []),
    ...SECURITY_HEADERS,
  ]
  respondWhole(sink, { status: 200, headers }, [bytes])
}

function refuse(sink: ByteSink, code: 'method_not_allowed' | 'route_not_found', headers: readonly string[]): void {
  const facts = { dialect: openaiErrors, requestId: timeOrderedIds.next('req'), headers }
  respondError(sink, new GatewayError(code), facts)
}

function pageText({ scriptName, styleName }: ConsoleAssets, publicPath: string | undefined): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Signalbox console</title>
${publicPath === undefined ? '' : `<base href="${publicPath}">\n`}<link rel="stylesheet" href="${styleName}">
<link rel="icon" href="data:,">
<script type="module" src="${scriptName}"></script>
</head>
<body>
<div id="app"></div>
<noscript>The console needs JavaScript. The same data is in the admin API beside this page.</noscript>
</body>
</html>
`
}

/** Bundled page. The build replaces the names with the texts (`console-page.config.ts`). */
declare const CONSOLE_SCRIPT: string
declare const CONSOLE_STYLE: string

/** File of the page. */
interface ConsoleAsset {
  readonly contentType: string
  readonly bytes: Buffer
  readonly gzipped: Buffer
}

/** Files of the page by name. A name contains a digest of its content, so that browsers can cache it indefinitely. */
interface ConsoleAssets {
  readonly scriptName: string
  readonly styleName: string
  readonly byName: ReadonlyMap<string, ConsoleAsset>
}

export function consoleAssets(): ConsoleAssets {
  const scriptName = hashedName(CONSOLE_SCRIPT, 'js')
  const styleName = hashedName(CONSOLE_STYLE, 'css')
  return {
    scriptName,
    styleName,
    byName: new Map([
      [scriptName, assetOf(CONSOLE_SCRIPT, 'text/javascript; charset=utf-8')],
      [styleName, assetOf(CONSOLE_STYLE, 'text/css; charset=utf-8')],
    ]),
  }
}

function hashedName(text: string, ending: string): string {
  return `console-${createHash('sha256').update(text).digest('hex').slice(0, 12)}.${ending}`
}

function assetOf(text: string, contentType: string): ConsoleAsset {
  const bytes = Buffer.from(text)
  return { contentType, bytes, gzipped: gzipSync(bytes, { level: 9 }) }
}
