# Reads a formula as Homebrew does, without Homebrew: prints the address and the sum for
# each system, then installs from an unpacked archive into a folder, and runs its test.
# Usage: ruby formula.rb FORMULA ARCHIVE-FOLDER TARGET
require "fileutils"
require "pathname"

# Place is a folder that takes files, also under other names (file => name).
class Place < Pathname
  def install(*what)
    mkpath
    what.flatten.flat_map { |w| w.is_a?(Hash) ? w.to_a : [[w, nil]] }.each do |from, name|
      raise "the archive has no #{from}" unless File.size?(from)
      FileUtils.cp(from, join(name || File.basename(from)))
    end
  end
end

class Formula
  class << self
    attr_reader :said
    def inherited(formula) = formula.instance_variable_set(:@said, {})
    %w[desc homepage license].each { |field| define_method(field) { |text| @said[field] = text } }
    def version(text = nil) = text ? @said["version"] = text : @said["version"]
    def within(word) = (@at = [*@at, word]; yield; @at.pop)
    %w[macos linux arm intel].each { |w| define_method("on_#{w}") { |&block| within(w, &block) } }
    def url(text) = @url = text
    def sha256(text) = puts("#{@at.join("-")} #{@url} #{text}")
    def test(&block) = define_method(:try, &block)
  end

  def initialize(target) = @target = Place.new(target)
  def version = self.class.version
  def bin = @target.join("bin").then { |p| Place.new(p) }
  %w[man1 bash_completion zsh_completion fish_completion].each do |folder|
    define_method(folder) { Place.new(@target.join(folder)) }
  end
  def shell_output(command) = `#{command}`.tap { raise "#{command} failed" unless $?.success? }
  def assert_match(text, output) = output.include?(text) || raise("#{output} does not say #{text}")
end

formula, archive, target = ARGV.map { |a| File.expand_path(a) }
load formula
%w[desc homepage license version].each { |f| Cmsjobs.said[f].to_s.empty? && raise("the formula says no #{f}") }
# What brew's own style asks of a description.
raise "the description is no short sentence without an end" unless Cmsjobs.said["desc"].match?(/\A(?!An? |The )[A-Z].{,78}[^.]\z/)
cmsjobs = Cmsjobs.new(target)
Dir.chdir(archive) { cmsjobs.install }
cmsjobs.try
