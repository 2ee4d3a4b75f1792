import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const FOLDER = new URL('./peers/', import.meta.url)
const MANIFEST = new URL('./package.json', FOLDER)

/** Loads packages like a program in `bench/peers`; they cannot be found from other folders. */
export const requirePeer = createRequire(MANIFEST)

/** A file of an installed peer. */
export const peerFile = (name, path) => new URL(`./node_modules/${name}/${path}`, FOLDER)

/** Returns the installed version of a peer, or undefined. */
export function peerVersion(name) {
  const manifest = peerFile(name, 'package.json')
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : undefined
}

/**
 * Installs the packages of `bench/peers/package.json` into that folder, by its lock file; does nothing if all are installed.
 * @throws Error if npm fails, usually without a network
 */
export function installPeers() {
  const missing = missingPackages(JSON.parse(readFileSync(MANIFEST, 'utf8')), peerVersion)
  if (missing.length === 0) return
  process.stderr.write(`installing ${missing.join(', ')} into bench/peers\n`)
  // Skips install scripts, because the peers run without them.
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: fileURLToPath(FOLDER),
    stdio: ['ignore', 2, 2],
  })
}

/** The packages that a manifest names, overrides included, and that are not installed in exactly that version. */
export function missingPackages({ dependencies = {}, overrides = {} }, versionOf) {
  return Object.entries({ ...dependencies, ...overrides })
    .filter(([name, version]) => versionOf(name) !== version)
    .map(([name, version]) => `${name}@${version}`)
}
