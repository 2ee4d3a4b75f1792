import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Git ignores it. */
const CACHE = fileURLToPath(new URL('./.cache/', import.meta.url))

/**
 * Reads a list of major versions, such as `20,24`.
 * @throws TypeError for anything else, or for a repeated version
 */
export function readMajors(text) {
  const majors = text.split(',').map((part) => part.trim())
  const isList = majors.every((major) => /^[1-9]\d*$/.test(major)) && new Set(majors).size === majors.length
  if (!isList) throw new TypeError(`--node takes major versions such as 20,24, not ${text}`)
  return majors.map(Number)
}

/** The npm package that contains Node for a machine, as the package `node` selects it. */
export const packageOf = ({ platform, arch }) => `node-${platform === 'win32' ? 'win' : platform}-${arch}`

/**
 * Finds Node in each of the major versions: our own if it is one of them, else the newest version on npm, which is installed once
 * into a folder that git ignores.
 * @returns {{ version: string, program: string }[]} in the order of `majors`
 * @throws Error if npm cannot install a version, because there is no network or no such package
 */
export function findNodes(majors) {
  return majors.map((major) => {
    const program = major === majorOf(process.versions.node) ? process.execPath : installedNode(major)
    const version = execFileSync(program, ['--version'], { encoding: 'utf8' }).trim().slice(1)
    if (majorOf(version) !== major) throw new Error(`${program} is Node ${version}, not ${major}`)
    return { version, program }
  })
}

const majorOf = (version) => Number.parseInt(version, 10)

function installedNode(major) {
  const name = packageOf(process)
  const folder = join(CACHE, `node-${major}`)
  const program = join(folder, 'node_modules', name, 'bin', 'node')
  if (existsSync(program)) return program
  process.stderr.write(`installing ${name}@${major} into bench/.cache\n`)
  mkdirSync(folder, { recursive: true })
  const options = ['--ignore-scripts', '--no-save', '--no-audit', '--no-fund', '--loglevel=error']
  execFileSync('npm', ['install', '--prefix', folder, ...options, `${name}@${major}`], { stdio: ['ignore', 2, 2] })
  return program
}
