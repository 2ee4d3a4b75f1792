import { existsSync } from 'node:fs'
import { importsOf, type SourceTree } from './source-tree.ts'

/** The folders of `src`, in order: each imports only from itself and from those before it. */
const LAYERS = [
  'core',
  'wire',
  'catalog',
  'transport',
  'credentials',
  'usage',
  'stores',
  'endpoints',
  'hooks',
  'vendors',
  'routing',
  'pipeline',
  'tasks',
  'adapters',
  'client',
  'gateway',
  'metrics',
  'otel',
  'mcp',
  'admin',
  'console',
  'testing',
  'cli',
]

/** Who alone may import a package: a folder (ending with `/`) or a file. */
const PACKAGE_OWNERS: Readonly<Record<string, string>> = {
  undici: 'transport/undici.ts',
  'eventsource-parser': 'wire/',
  'form-data-encoder': 'wire/',
  '@fastify/busboy': 'wire/',
  '@modelcontextprotocol/server': 'mcp/',
  '@opentelemetry/api': 'otel/',
  'wasm-media-encoders': 'wire/',
  preact: 'console/page/',
  commander: 'cli/',
}

/** Packages of which the build puts a copy into the package; nobody who uses it installs them. */
const BUNDLED = ['preact', 'zod']

/** Where the vendors come together: the only places outside of `vendors/` that may name one. */
const VENDOR_USERS = /^(?:index\.ts$|cli\/|testing\/)/

function layerOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : ''
}

/** Imports that point up the layer order, and folders that are not in it. */
export function wrongWayImports(tree: SourceTree): string[] {
  const offences: string[] = []
  for (const [path, text] of tree) {
    const layer = layerOf(path)
    if (layer === '') continue
    const rank = LAYERS.indexOf(layer)
    if (rank === -1) offences.push(`${path}: src/${layer}/ is not in the layer order`)
    for (const { target } of importsOf(path, text)) {
      if (target === undefined || layerOf(target) === layer) continue
      const targetRank = LAYERS.indexOf(layerOf(target))
      if (targetRank === -1 || targetRank > rank)
        offences.push(`${path} -> ${target}: imports point down the order only`)
    }
  }
  return offences
}

/** Imports of a vendor's inside from elsewhere, and of one vendor by another. */
export function unsealedVendorImports(tree: SourceTree): string[] {
  const offences: string[] = []
  for (const [path, text] of tree) {
    for (const { target } of importsOf(path, text)) {
      if (target?.startsWith('vendors/') !== true || target === 'vendors/vendor.ts') continue
      const [, vendor = ''] = target.split('/')
      if (path.startsWith(`vendors/${vendor}/`)) continue
      if (path.startsWith('vendors/')) {
        if (vendor !== 'shared' || path === 'vendors/vendor.ts')
          offences.push(`${path} -> ${target}: vendors are sealed`)
      } else if (target !== `vendors/${vendor}/${vendor}.ts`) {
        offences.push(`${path} -> ${target}: outsiders see vendors/vendor.ts and the factories only`)
      } else if (!VENDOR_USERS.test(path)) {
        offences.push(`${path} -> ${target}: shared code does not choose a vendor`)
      }
    }
  }
  return offences
}

/** Folders that serve every endpoint, and so know none of them. */
const SHARED_BY_ENDPOINTS = new Set([
  ...[
    'core',
    'wire',
    'catalog',
    'transport',
    'usage',
    'stores',
    'hooks',
    'routing',
    'pipeline',
    'tasks',
    'adapters',
    'gateway',
  ],
])

/** Imports of one endpoint's own folder by code that serves all endpoints, which may import only the contracts next to the folders. */
export function endpointRoomImports(tree: SourceTree): string[] {
  const offences: string[] = []
  for (const [path, text] of tree) {
    const isContract = /^endpoints\/[^/]+$/.test(path) && path !== 'endpoints/registry.ts'
    if (!isContract && !SHARED_BY_ENDPOINTS.has(layerOf(path))) continue
    for (const { target } of importsOf(path, text)) {
      if (target !== undefined && /^endpoints\/[^/]+\//.test(target))
        offences.push(`${path} -> ${target}: what serves every endpoint knows none of them`)
    }
  }
  return offences
}

/** Packages imported by others than their owner, and packages that are neither builtin nor a dependency. */
export function foreignPackageImports(tree: SourceTree, dependencies: readonly string[]): string[] {
  const offences: string[] = []
  for (const [path, text] of tree) {
    for (const { specifier, target } of importsOf(path, text)) {
      if (target !== undefined || specifier.startsWith('node:')) continue
      const name = packageName(specifier)
      const owner = PACKAGE_OWNERS[name]
      if (!dependencies.includes(name) && !BUNDLED.includes(name))
        offences.push(`${path}: ${specifier} is not a runtime dependency`)
      if (owner !== undefined && !(owner.endsWith('/') ? path.startsWith(owner) : path === owner)) {
        offences.push(`${path}: only src/${owner} may import ${name}`)
      }
    }
  }
  return offences
}

function packageName(specifier: string): string {
  const parts = specifier.split('/')
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? '')
}

/** Relative imports that name no file of the tree: without extension, or of something that is not there. */
export function unresolvedImports(tree: SourceTree): string[] {
  const offences: string[] = []
  for (const [path, text] of tree) {
    for (const { specifier, target } of importsOf(path, text)) {
      // Data is imported too, and is in no tree of sources.
      if (target?.endsWith('.json') === true && existsSync(`src/${target}`)) continue
      if (target !== undefined && !tree.has(target)) offences.push(`${path}: no such file: ${specifier}`)
    }
  }
  return offences
}

/** Rings of files that import each other, types included, each written once as `a -> b -> a`. */
export function importCycles(tree: SourceTree): string[] {
  const cycles: string[] = []
  const finished = new Set<string>()
  const trail: string[] = []
  const walk = (path: string): void => {
    const start = trail.indexOf(path)
    if (start !== -1) {
      cycles.push([...trail.slice(start), path].join(' -> '))
      return
    }
    if (finished.has(path)) return
    trail.push(path)
    for (const { target } of importsOf(path, tree.get(path) ?? '')) {
      if (target !== undefined && tree.has(target)) walk(target)
    }
    trail.pop()
    finished.add(path)
  }
  for (const path of tree.keys()) walk(path)
  return cycles
}
